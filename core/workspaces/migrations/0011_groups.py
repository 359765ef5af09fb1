"""Groups of workspaces, and the scope of workspace administration."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0010_events"),
    ]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="group",
            field=models.CharField(blank=True, db_default="", default="", max_length=100),
        ),
        migrations.AlterField(
            model_name="apikey",
            name="scope",
            field=models.CharField(
                choices=[
                    ("full_access", "Full access"),
                    ("sending_access", "Sending access"),
                    ("read_only", "Read only"),
                    ("workspace_admin", "Workspace administration"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="act",
            field=models.CharField(
                choices=[
                    ("key_created", "API key created"),
                    ("key_revoked", "API key revoked"),
                    ("domain_added", "Domain added"),
                    ("domain_deleted", "Domain deleted"),
                    ("domain_changed", "Domain changed"),
                    ("domain_rotated", "Domain key rotated"),
                    ("domain_verified", "Domain verified"),
                    ("template_created", "Template created"),
                    ("template_changed", "Template changed"),
                    ("template_deleted", "Template deleted"),
                    ("webhook_created", "Webhook created"),
                    ("webhook_changed", "Webhook changed"),
                    ("webhook_deleted", "Webhook deleted"),
                    ("webhook_rotated", "Webhook secret rotated"),
                    ("suppression_added", "Suppression added"),
                    ("suppression_removed", "Suppression removed"),
                    ("member_invited", "Member invited"),
                    ("invitation_withdrawn", "Invitation revoked"),
                    ("member_joined", "Member joined"),
                    ("member_role", "Member's role changed"),
                    ("member_removed", "Member removed"),
                    ("member_left", "Member left"),
                    ("signed_in", "Signed in"),
                    ("workspace_created", "Workspace created"),
                    ("workspace_proven", "Address confirmed"),
                    ("workspace_suspended", "Workspace suspended"),
                    ("suspension_lifted", "Suspension lifted"),
                    ("owners_warned", "Owners warned"),
                    ("plan_changed", "Plan changed"),
                    ("workspace_renamed", "Workspace renamed"),
                    ("email_looked_at", "Email viewed"),
                    ("address_erased", "Address erased"),
                ],
                max_length=24,
            ),
        ),
    ]
