"""Events of workspaces are in the log of the app events.

The table stays for the version before, and is dropped in the next one. Without its foreign key, workspaces can be
deleted by code that does not know it.
"""

from django.db import migrations

DROP_FOREIGN_KEY = """
DO $$
DECLARE name text;
BEGIN
    FOR name IN
        SELECT conname FROM pg_constraint WHERE conrelid = 'workspaces_workspaceevent'::regclass AND contype = 'f'
    LOOP
        EXECUTE format('ALTER TABLE workspaces_workspaceevent DROP CONSTRAINT %I', name);
    END LOOP;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0014_language_and_time_zone")]

    operations = [
        migrations.RunSQL(
            DROP_FOREIGN_KEY,
            migrations.RunSQL.noop,
            state_operations=[migrations.DeleteModel("WorkspaceEvent")],
        )
    ]
