"""Emails that wait for the decision of a person (docs/decisions/0390). No scan of the tables."""

import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

HELD = models.Q(("approval_expires_at__isnull", False))


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False
    dependencies = [("emails", "0046_recipient_rules"), ("workspaces", "0019_own_limits")]

    operations = [
        migrations.AddField("email", "approval_expires_at", models.DateTimeField(null=True)),
        migrations.AlterField(
            "queueentry",
            "stage",
            models.PositiveSmallIntegerField(
                choices=[
                    (0, "Waiting"),
                    (1, "Ready"),
                    (2, "Leased"),
                    (3, "Scheduled"),
                    (4, "Held"),
                    (5, "Paced"),
                    (6, "Unapproved"),
                ]
            ),
        ),
        migrations.CreateModel(
            "ApprovalNotice",
            [
                (
                    "workspace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="workspaces.workspace",
                    ),
                ),
                ("has_new", models.BooleanField(help_text="whether an email was held after the last notice")),
                ("sent_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("has_new", True)), fields=["sent_at"], name="approval_notice_due")
                ]
            },
        ),
        AddIndexConcurrently(
            "email", models.Index(condition=HELD, fields=["workspace", "-created_at", "-id"], name="email_held")
        ),
        AddIndexConcurrently(
            "email", models.Index(condition=HELD, fields=["approval_expires_at"], name="email_approval_due")
        ),
    ]
