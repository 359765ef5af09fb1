"""Answers to an email can go to a signed address for each recipient."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("emails", "0028_transport_use"),
    ]

    operations = [
        migrations.AddField(
            model_name="email",
            name="reply_domain",
            field=models.CharField(max_length=253, null=True),
        ),
    ]
