"""`postrider emails`."""

import itertools
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import click

from postrider_client.answers import Email
from postrider_client.cli.commands import PostriderGroup, pass_invocation
from postrider_client.cli.invocation import Invocation
from postrider_client.cli.output import Column, note

MAX_PAGE = 100
EMAIL_COLUMNS = (
    Column("Id", attrgetter("id"), is_whole=True),
    Column("Status", attrgetter("status")),
    Column("Created", attrgetter("created_at")),
    Column("To", attrgetter("to"), is_text=True),
    Column("Subject", attrgetter("subject"), is_text=True),
)
RECIPIENT_COLUMNS = (
    Column("Recipient", attrgetter("email")),
    Column("", attrgetter("type")),
    Column("Status", attrgetter("status")),
    Column("Reason", attrgetter("reason")),
    Column("Reply", attrgetter("error_message")),
)
EVENT_COLUMNS = (
    Column("Time", attrgetter("created_at")),
    Column("Event", attrgetter("event_type")),
    Column("Details", lambda event: details_of(event.payload)),
)


@click.group(cls=PostriderGroup)
def emails() -> None:
    """List emails and show their timelines."""


@emails.command("list")
@click.option("--status", multiple=True, metavar="STATUS", help="Such as bounced. Repeatable.")
@click.option("--event", multiple=True, metavar="EVENT", help="Such as complained. Repeatable.")
@click.option("--search", metavar="TEXT", help="Part of an address or the subject.")
@click.option("--tag", metavar="TAG")
@click.option("--held", type=click.Choice(["approval"]), help="Only emails that wait for approval.")
@click.option("--stream", metavar="ID", help="Only emails of this stream.")
@click.option("--since", "from_", metavar="DATE", help="Created on or after this date or time.")
@click.option("--until", "to", metavar="DATE", help="Created on or before this date or time.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="The most emails to show.")
@pass_invocation
def list_emails(
    invocation: Invocation, /, *, limit: int, status: Sequence[str], event: Sequence[str], **query: Any
) -> None:
    """List matching emails, newest first."""
    with invocation.client() as client:
        found = client.emails.list(status=status or None, event=event or None, limit=min(limit, MAX_PAGE), **query)
        page = found.fetch()
        is_whole = limit <= MAX_PAGE and not page.continue_to
        rows = page.data if is_whole else list(itertools.islice(found, limit))
    output = invocation.output
    output.show_rows(rows, EMAIL_COLUMNS)
    if output.is_table and len(rows) < page.total:
        total = f"{page.total:,}" if page.total_is_exact else f"more than {page.total - 1:,}"
        note(f"{len(rows):,} of {total} emails.")


@emails.command("show")
@click.argument("email_id", metavar="ID")
@pass_invocation
def show_email(invocation: Invocation, email_id: str) -> None:
    """Show an email, its recipients and its timeline."""
    with invocation.client() as client:
        email = client.emails.get(email_id)
        events = client.emails.events(email_id)
    output = invocation.output
    raw = {**email.raw, "events": [event.raw for event in events]}
    output.show_fields(_fields_of(email), raw=raw)
    if output.is_table:
        output.show_rows(email.recipients, RECIPIENT_COLUMNS)
        output.show_rows(events, EVENT_COLUMNS)


def details_of(payload: dict[str, Any]) -> str:
    """Return the values of an event that explain it, without nested ones and the id of the email."""
    values = {name: value for name, value in payload.items() if isinstance(value, (str, int)) and name != "emailId"}
    return "  ".join(f"{name}={value}" for name, value in values.items() if value)


def _fields_of(email: Email) -> dict[str, Any]:
    return {
        "Id": email.id,
        "Status": email.status,
        "Waiting for": email.waiting_for and email.waiting_for.detail,
        "Held until": email.held and email.held.expires_at,
        "From": email.from_,
        "To": email.to,
        "Cc": email.cc,
        "Bcc": email.bcc,
        "Subject": email.subject,
        "Created": email.created_at,
        "Scheduled for": email.scheduled_for,
        "Expires": email.expires_at,
        "Template": email.template_id,
        "Stream": email.stream,
        "Tags": email.tags,
        "Attachments": [file.filename for file in email.attachments],
    }
