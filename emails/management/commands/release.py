"""manage.py release: end a hold."""

from typing import Any

from django.core.management.base import BaseCommand

from emails.sending.sending_pause import release_sending


class Command(BaseCommand):
    help = "Let workers send again after manage.py hold."

    def handle(self, *args: Any, **options: Any) -> None:
        release_sending()
        self.stdout.write("Mail leaves again.")
