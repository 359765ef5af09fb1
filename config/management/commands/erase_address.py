"""manage.py erase_address: forget a person, by address."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from emails.upkeep.erasure import erase_emails
from inbound import queue as reports
from inbound.inbox.retention import erase_mail
from lib.email_addresses import InvalidAddress, parse_address
from system_mail import queue as system_mail


class Command(BaseCommand):
    help = (
        "Erase what is kept of a person in all workspaces, by address: emails with their timelines, what webhooks tell "
        "of them, reports, caught mail. Counters stay, and so does a suppression. May be repeated."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("address")

    def handle(self, *args: Any, address: str, **options: Any) -> None:
        try:
            spec = parse_address(address).spec
        except InvalidAddress as error:
            raise CommandError(f"{address!r} is no address.") from error
        erased = erase_emails(spec)
        reports.erase(spec)
        erase_mail(spec)
        system_mail.erase(spec)
        self.stdout.write(f"{erased.emails} emails are erased.")
        if erased.left:
            self.stdout.write(f"{erased.left} are still on their way: cancel them, or come again when they have ended.")
