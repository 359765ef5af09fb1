"""`postrider approvals`."""

import itertools
from collections.abc import Sequence
from operator import attrgetter
from typing import Optional

import click

from postrider_client.answers import Decided
from postrider_client.cli.commands import PostriderGroup, pass_invocation
from postrider_client.cli.emails import MAX_PAGE
from postrider_client.cli.invocation import Invocation
from postrider_client.cli.output import Column, plain_lines

WAITING_COLUMNS = (
    Column("Id", attrgetter("id"), is_whole=True),
    Column("Until", lambda email: email.held and email.held.expires_at),
    Column("From", attrgetter("from_"), is_text=True),
    Column("To", attrgetter("to"), is_text=True),
    Column("Subject", attrgetter("subject"), is_text=True),
)
IDS = click.argument("email_ids", metavar="ID...", nargs=-1, required=True)


@click.group(cls=PostriderGroup)
def approvals() -> None:
    """Approve or reject emails that wait for it. Requires a key with the scope approvals."""


@approvals.command("list")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="The most emails to show.")
@pass_invocation
def list_waiting(invocation: Invocation, *, limit: int) -> None:
    """List the emails that wait for approval, newest first."""
    with invocation.client() as client:
        found = client.emails.list(held="approval", limit=min(limit, MAX_PAGE))
        invocation.output.show_rows(list(itertools.islice(found, limit)), WAITING_COLUMNS)


@approvals.command("show")
@click.argument("email_id", metavar="ID")
@pass_invocation
def show_waiting(invocation: Invocation, email_id: str) -> None:
    """Show an email as it will be sent: its fields, text and HTML."""
    with invocation.client() as client:
        email = client.emails.get(email_id)
    fields = {
        "Id": email.id,
        "Status": email.status,
        "Waits until": email.held and email.held.expires_at,
        "From": email.from_,
        "To": email.to,
        "Cc": email.cc,
        "Bcc": email.bcc,
        "Reply-To": email.reply_to,
        "Subject": email.subject,
        "Scheduled for": email.scheduled_for,
        "Attachments": [file.filename for file in email.attachments],
        "Text": plain_lines(email.text),
        "HTML": plain_lines(email.html_content),
    }
    invocation.output.show_fields(fields, raw=email.raw)


@approvals.command("approve")
@IDS
@pass_invocation
def approve(invocation: Invocation, email_ids: Sequence[str]) -> None:
    """Approve emails: they are sent as they were accepted.

    Stops at the first one that does not wait for approval any more.
    """
    with invocation.client() as client:
        for email_id in email_ids:
            _show(invocation, client.emails.approve(email_id))


@approvals.command("reject")
@IDS
@click.option("--reason", metavar="TEXT", help="Why they are not sent. The sender sees it in the event.")
@pass_invocation
def reject(invocation: Invocation, /, *, email_ids: Sequence[str], reason: Optional[str]) -> None:
    """Reject emails: they are cancelled.

    Stops at the first one that does not wait for approval any more.
    """
    with invocation.client() as client:
        for email_id in email_ids:
            _show(invocation, client.emails.reject(email_id, reason=reason))


def _show(invocation: Invocation, decided: Decided) -> None:
    message = f"{decided.id} is {decided.decision.decision}; its status is {decided.status}."
    invocation.output.show_result(message, raw=decided.raw)
