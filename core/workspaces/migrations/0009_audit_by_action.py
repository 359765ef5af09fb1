"""An index for the categories of the audit log."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Entries are added while the index of a large table is built.
    atomic = False
    dependencies = [("workspaces", "0008_audit_of_templates_and_sign_ins")]

    operations = [
        AddIndexConcurrently(
            model_name="auditentry", index=models.Index(fields=["workspace", "act", "-id"], name="audit_by_action")
        ),
    ]
