"""Keep the data of a template as the text that it was rendered with; jsonb does not keep the order of keys."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0003_search")]

    operations = [migrations.AlterField("email", "template_data", models.TextField(null=True))]
