"""Leases of configuration runs."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("provisioning", "0002_responses"),
    ]

    operations = [
        migrations.CreateModel(
            name="ConfigurationLease",
            fields=[
                (
                    "subject",
                    models.CharField(
                        help_text="the id of a workspace, or `workspaces`",
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("token", models.CharField(help_text="chosen by the run", max_length=100)),
                ("expires_at", models.DateTimeField()),
            ],
        ),
    ]
