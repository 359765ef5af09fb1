"""Copy the events of workspaces to the log, and let its sequencer take over (events.former_sequencer).

The table of the version before is dropped in the next version. Going back to the version before needs
`manage.py prepare_downgrade`, not the reversal of this migration.
"""

from typing import Any

from django.db import migrations

from events.former_sequencer import return_feed, take_over_feed


def take_over(apps: Any, schema_editor: Any) -> None:
    take_over_feed()


def give_back(apps: Any, schema_editor: Any) -> None:
    return_feed()


class Migration(migrations.Migration):
    # Each batch is a transaction.
    atomic = False

    dependencies = [("events", "0003_indexes"), ("workspaces", "0014_language_and_time_zone")]

    operations = [migrations.RunPython(take_over, give_back)]
