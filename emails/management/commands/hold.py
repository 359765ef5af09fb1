"""manage.py hold: pause all sending."""

from typing import Any

from django.core.management.base import BaseCommand

from emails.sending.sending_pause import pause_sending


class Command(BaseCommand):
    help = "Pause all sending until manage.py release. Run it on a restored database before starting workers."

    def handle(self, *args: Any, **options: Any) -> None:
        pause_sending()
        self.stdout.write("Sending is paused. Run manage.py release to resume.")
