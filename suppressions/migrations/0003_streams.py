"""The stream of a suppression: a column with a constant default, and a longer key, which rewrite no table."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("suppressions", "0002_choices_as_functions")]

    operations = [
        migrations.AddField(
            model_name="suppression",
            name="stream",
            field=models.CharField(blank=True, db_default="", default="", max_length=40),
        ),
        migrations.AlterField(
            model_name="suppression",
            name="address_key",
            field=models.CharField(editable=False, help_text="the normalized address", max_length=300),
        ),
    ]
