"""manage.py hold: let no mail leave."""

from typing import Any

from django.core.management.base import BaseCommand

from emails.sending.sending_pause import hold_sending


class Command(BaseCommand):
    help = "Let no worker claim an email until manage.py release; run it on a restored database before workers start."

    def handle(self, *args: Any, **options: Any) -> None:
        hold_sending()
        self.stdout.write("No email is claimed until manage.py release.")
