"""manage.py prepare_downgrade: let the sequencer of a version before 1.0 continue the feed of events."""

from typing import Any

from django.core.management.base import BaseCommand

from events.former_sequencer import return_feed
from events.sequencer import sequence_events
from webhooks.publishing import publish_events


class Command(BaseCommand):
    help = (
        "Let a version before 1.0 continue the feed of events: run it as the last command of this version, when its "
        "processes are stopped. It changes no data but the progress of the sequencers. Safe to run again; migrate "
        "undoes it."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        # The version before makes no webhook deliveries for them.
        sequence_events()
        publish_events()
        if return_feed():
            self.stdout.write("The sequencer of the version before 1.0 continues the feed. Start that version now.")
        else:
            self.stdout.write("Nothing changed: the feed already belongs to the sequencer of the version before 1.0.")
