"""manage.py release: resume sending."""

from typing import Any

from django.core.management.base import BaseCommand

from emails.sending.sending_checks import resume_sending


class Command(BaseCommand):
    help = "Resume sending after manage.py hold."

    def handle(self, *args: Any, **options: Any) -> None:
        resume_sending()
        self.stdout.write("Sending has resumed.")
