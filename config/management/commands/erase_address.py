"""manage.py erase_address: erase the data of one email address."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from console.system_mail import queue as system_mail
from core.lib.email_addresses import InvalidAddress, parse_recipient
from emails.upkeep.erasure import erase_emails
from interfaces.inbound.inbox.retention import erase_mail
from interfaces.inbound.queue import erase_reports
from receiving.deletion import erase_received


class Command(BaseCommand):
    help = (
        "Erase the data of an address in all workspaces: emails with their timelines and webhook deliveries, received "
        "emails, reports and messages of the built-in inbox. Counters and suppressions are kept. Safe to run again."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("address")

    def handle(self, *args: Any, address: str, **options: Any) -> None:
        try:
            spec = parse_recipient(address).spec
        except InvalidAddress as error:
            raise CommandError(f"{address!r} is not an email address.") from error
        erased = erase_emails(spec)
        received = erase_received(spec)
        erase_reports(spec)
        erase_mail(spec)
        system_mail.erase_system_mail(spec)
        self.stdout.write(f"{erased.emails} emails erased.")
        if received:
            self.stdout.write(f"{received} received emails erased.")
        if erased.in_progress:
            self.stdout.write(
                f"{erased.in_progress} still in progress: cancel them, or run this command again once they are sent."
            )
