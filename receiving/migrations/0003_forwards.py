"""Forwards, and the addresses that have agreed to them."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import core.lib.model_fields


class Migration(migrations.Migration):
    dependencies = [
        ("receiving", "0002_content_of_webhooks"),
        ("workspaces", "0018_identities"),
    ]

    operations = [
        migrations.AddField(
            model_name="inboundroute",
            name="forward_to",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=254), blank=True, db_default=[], default=list, size=None
            ),
        ),
        migrations.CreateModel(
            name="Forward",
            fields=[
                ("id", core.lib.model_fields.IdField("fwd_", editable=False, primary_key=True, serialize=False)),
                ("route_id", core.lib.model_fields.IdField("rt_", editable=False, null=True)),
                ("address", models.CharField(max_length=254)),
                ("sent_email_id", core.lib.model_fields.IdField("", editable=False, null=True)),
                ("error", models.CharField(blank=True, default="", max_length=40)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "email",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="forwards",
                        to="receiving.receivedemail",
                    ),
                ),
            ],
            options={
                "ordering": ["created_at", "id"],
                "indexes": [models.Index(fields=["route_id", "created_at"], name="forward_of_route")],
            },
        ),
        migrations.CreateModel(
            name="ForwardTarget",
            fields=[
                ("id", core.lib.model_fields.IdField("fwt_", editable=False, primary_key=True, serialize=False)),
                ("address", models.CharField(max_length=254)),
                ("link_sent_at", models.DateTimeField(editable=False, null=True)),
                ("confirmed_at", models.DateTimeField(editable=False, null=True)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="forward_targets",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["address"], name="forward_target_address")],
                "constraints": [models.UniqueConstraint(fields=("workspace", "address"), name="one_target_an_address")],
            },
        ),
    ]
