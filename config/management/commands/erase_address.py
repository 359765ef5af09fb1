"""manage.py erase_address: erase the data of one email address."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from console.privacy.steps import run_all
from console.system_mail import queue as system_mail
from core.erasing.audit_log import erase_searches
from core.erasing.steps import ErasureScope, StepResult
from core.lib.coded_texts import CodedText
from core.lib.email_addresses import InvalidAddress, parse_recipient
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.models import Workspace
from interfaces.inbound.inbox.retention import erase_system_messages
from interfaces.inbound.queue import erase_all_reports
from suppressions.erased import erase_suppressions


class Command(BaseCommand):
    help = (
        "Erase the data of an address in all workspaces: emails with their timelines and webhook deliveries, received "
        "emails, reports and messages of the built-in inbox. Counters stay, and suppressions as a hash. Safe to run "
        "again."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("address")

    def handle(self, *args: Any, address: str, **options: Any) -> None:
        try:
            spec = parse_recipient(address).spec.lower()
        except InvalidAddress as error:
            raise CommandError(f"{address!r} is not an email address.") from error
        total = StepResult()
        for workspace in Workspace.objects.order_by("id"):
            erased = _erase_from(workspace, spec)
            total.add([spec], **erased.counts_of(spec))
            total.waiting += erased.waiting
        erase_all_reports(spec)
        erase_system_messages(spec)
        system_mail.erase_system_mail(spec)
        erase_searches(spec)
        self._report(total, spec)

    def _report(self, total: StepResult, address: str) -> None:
        counts, waiting = total.counts_of(address), total.waiting[address]
        self.stdout.write(f"{counts['emails']} emails erased.")
        if received := counts["receivedEmails"]:
            self.stdout.write(f"{received} received emails erased.")
        if waiting:
            self.stdout.write(
                f"{waiting} still in progress: cancel them, or run this command again once they are sent."
            )


def _erase_from(workspace: Workspace, address: str) -> StepResult:
    """Erase an address from one workspace. Its suppressions are hashed once none of its emails is on its way."""
    erased = run_all(ErasureScope(workspace.id, (address,)))
    if not erased.waiting[address]:
        erase_suppressions(workspace, address, is_kept=True)
    if count := erased.counts_of(address)["emails"]:
        # Only the number: the audit log outlives the erased data.
        record_action(workspace, AuditAction.ADDRESS_ERASED, about=CodedText("workspaces.email_count", count=count))
    return erased
