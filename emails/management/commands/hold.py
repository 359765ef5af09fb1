"""manage.py hold: pause all sending, and let readers of the event feed continue after a restore."""

from typing import Any

from django.core.management.base import BaseCommand

from emails.sending.sending_checks import pause_sending
from events.sequencer import lift_positions


class Command(BaseCommand):
    help = "Pause all sending until manage.py release. Run it on a restored database before starting workers."

    def handle(self, *args: Any, **options: Any) -> None:
        pause_sending()
        lift_positions()
        self.stdout.write("Sending is paused. Run manage.py release to resume.")
