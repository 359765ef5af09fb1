"""Identities at an identity provider, roles by their claims, and audit entries of the installation."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models.functions import Now

ROLES = [("owner", "Owner"), ("member", "Member")]


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0017_choices_as_functions")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="staff_from_claims",
            field=models.BooleanField(
                db_default=False, default=False, editable=False, verbose_name="staff by the provider"
            ),
        ),
        migrations.AddField(
            model_name="user",
            name="sessions_ended_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="membership",
            name="claimed_role",
            field=models.CharField(blank=True, choices=ROLES, db_default="", default="", editable=False, max_length=16),
        ),
        migrations.AddField(
            model_name="membership",
            name="invited_role",
            field=models.CharField(blank=True, choices=ROLES, db_default="", default="", editable=False, max_length=16),
        ),
        # By hand: Django would create the foreign key again, which locks both tables.
        migrations.RunSQL(
            "ALTER TABLE workspaces_auditentry ALTER COLUMN workspace_id DROP NOT NULL",
            migrations.RunSQL.noop,
            state_operations=[
                migrations.AlterField(
                    model_name="auditentry",
                    name="workspace",
                    field=models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="audit",
                        to="workspaces.workspace",
                    ),
                )
            ],
        ),
        migrations.CreateModel(
            name="Identity",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("issuer", models.CharField(max_length=255)),
                ("subject", models.CharField(max_length=255)),
                ("created_at", models.DateTimeField(db_default=Now(), editable=False)),
                ("last_sign_in_at", models.DateTimeField(editable=False, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="identities",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "identities",
                "constraints": [
                    models.UniqueConstraint(fields=["issuer", "subject"], name="one_account_per_identity"),
                    models.UniqueConstraint(fields=["user", "issuer"], name="one_identity_per_issuer"),
                ],
            },
        ),
        migrations.CreateModel(
            name="UsedLogoutToken",
            fields=[
                ("digest", models.CharField(editable=False, max_length=64, primary_key=True, serialize=False)),
                ("expires_at", models.DateTimeField(editable=False)),
            ],
        ),
    ]
