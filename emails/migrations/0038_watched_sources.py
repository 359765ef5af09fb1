"""Own addresses, with their reverse names and the answers of block lists (docs/decisions/0349)."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("emails", "0037_receiver_pace")]

    operations = [
        migrations.CreateModel(
            name="WatchedSource",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("address", models.GenericIPAddressField(unique=True)),
                ("looked_up_at", models.DateTimeField(null=True)),
                (
                    "reverse_status",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("confirmed", "confirmed"),
                            ("unconfirmed", "unconfirmed"),
                            ("missing", "missing"),
                        ],
                        max_length=11,
                    ),
                ),
                (
                    "reverse_names",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=253), default=list, size=None
                    ),
                ),
                ("reverse_checked_at", models.DateTimeField(null=True)),
                ("reverse_error", models.CharField(blank=True, max_length=500)),
            ],
            options={"db_table": "emails_watched_source"},
        ),
        migrations.CreateModel(
            name="SourceListing",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=253)),
                ("listed_at", models.DateTimeField(null=True)),
                ("checked_at", models.DateTimeField(null=True)),
                ("codes", models.CharField(blank=True, max_length=200)),
                ("text", models.CharField(blank=True, max_length=500)),
                ("error", models.CharField(blank=True, max_length=500)),
                ("notified_at", models.DateTimeField(null=True)),
                (
                    "source",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="listings",
                        to="emails.watchedsource",
                    ),
                ),
            ],
            options={
                "db_table": "emails_source_listing",
                "constraints": [models.UniqueConstraint(fields=("source", "name"), name="listing_of_source")],
            },
        ),
    ]
