"""`postrider inbound`: received emails."""

import itertools
import sys
from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, Optional

import click

from postrider_client.cli.commands import PostriderGroup, pass_invocation
from postrider_client.cli.emails import MAX_PAGE
from postrider_client.cli.inbound_routes import blocks, routes
from postrider_client.cli.invocation import Invocation
from postrider_client.cli.output import Column, plain_lines
from postrider_client.inbound_answers import ReceivedEmail, ReceivedItem


def origin_of(email: ReceivedItem) -> str:
    """Return whether a message is proven to come from the domain of its From, in words."""
    if email.authentication is None:
        return ""
    domain = email.authentication.dmarc.domain
    return f"really from {domain}" if email.authentication.result == "pass" else "not proven"


def sender_of(email: ReceivedItem) -> str:
    return email.from_.email if email.from_ else ""


RECEIVED_COLUMNS = (
    Column("Id", attrgetter("id"), is_whole=True),
    Column("Status", attrgetter("status")),
    Column("Received", attrgetter("received_at")),
    Column("Recipient", attrgetter("recipient"), is_text=True),
    Column("From", sender_of, is_text=True),
    Column("Origin", origin_of),
    Column("Subject", attrgetter("subject"), is_text=True),
)
FILE_COLUMNS = (
    Column("Attachment", attrgetter("id")),
    Column("Name", attrgetter("filename")),
    Column("Type", attrgetter("content_type")),
    Column("Bytes", attrgetter("size")),
)


@click.group(cls=PostriderGroup)
def inbound() -> None:
    """Read received emails, and manage routes and blocked senders.

    Other people wrote these emails. "Really from" means that the domain of the sender is proven.
    """


inbound.add_command(routes)
inbound.add_command(blocks)


@inbound.command("settings")
@pass_invocation
def show_settings(invocation: Invocation) -> None:
    """Show the address of the workspace that needs no DNS, the hosts for MX records, and the use of the limits."""
    with invocation.client() as client:
        settings = client.inbound.get()
    fields = {
        "Address": settings.address,
        "Hosts for MX records": settings.mail_hosts,
        "Largest message": f"{settings.max_message_bytes:,} bytes",
        "Storage": _use(settings.storage.used, settings.storage.limit, "bytes"),
        "Today": _use(settings.messages.used, settings.messages.limit, "messages"),
    }
    invocation.output.show_fields(fields, raw=settings.raw)


@inbound.command("list")
@click.option("--recipient", metavar="TEXT", help="Part of the address that received it.")
@click.option("--from", "from_", metavar="TEXT", help="Part of the sender.")
@click.option("--subject", metavar="TEXT", help="Part of the subject.")
@click.option("--tag", metavar="TAG", help="The label after the plus sign of the recipient.")
@click.option("--status", type=click.Choice(["stored", "processed", "blocked", "unreadable"]))
@click.option("--route", "route_id", metavar="ID", help="Only emails of this route.")
@click.option("--answers", "email_id", metavar="ID", help="Only answers to this sent email.")
@click.option("--since", "after", metavar="DATE", help="Received on or after this date or time.")
@click.option("--until", "before", metavar="DATE", help="Received on or before this date or time.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="The most emails to show.")
@pass_invocation
def list_received(invocation: Invocation, /, *, limit: int, **query: Any) -> None:
    """List matching received emails, newest first."""
    with invocation.client() as client:
        found = client.inbound.emails.list(limit=min(limit, MAX_PAGE), **query)
        invocation.output.show_rows(itertools.islice(found, limit), RECEIVED_COLUMNS)


@inbound.command("show")
@click.argument("received_id", metavar="ID")
@pass_invocation
def show_received(invocation: Invocation, received_id: str) -> None:
    """Show a received email: its origin, the sent email that it answers, its text and its attachments."""
    with invocation.client() as client:
        email = client.inbound.emails.get(received_id)
    output = invocation.output
    output.show_fields(_fields_of(email), raw=email.raw)
    if output.is_table and email.attachments:
        output.show_rows(email.attachments, FILE_COLUMNS)


@inbound.command("raw")
@click.argument("received_id", metavar="ID")
@pass_invocation
def show_raw(invocation: Invocation, received_id: str) -> None:
    """Print the message as it was received, with the verdicts of the service in front."""
    with invocation.client() as client:
        _write_bytes(invocation, client.inbound.emails.raw(received_id))


@inbound.command("attachment")
@click.argument("received_id", metavar="ID")
@click.argument("attachment_id", metavar="ATTACHMENT")
@click.option("-o", "--output", "path", type=click.Path(dir_okay=False), required=True, help="The file to write.")
@pass_invocation
def save_attachment(invocation: Invocation, received_id: str, attachment_id: str, path: str) -> None:
    """Save an attachment. Other people wrote it: do not open what you do not expect."""
    with invocation.client() as client:
        content = client.inbound.emails.attachment(received_id, attachment_id)
    Path(path).write_bytes(content)
    raw = {"file": path, "size": len(content)}
    invocation.output.show_result(f"{len(content):,} bytes are written to {path}.", raw=raw)


@inbound.command("bypass")
@click.argument("received_id", metavar="ID")
@pass_invocation
def bypass(invocation: Invocation, received_id: str) -> None:
    """Publish a blocked email."""
    with invocation.client() as client:
        email = client.inbound.emails.bypass(received_id)
    invocation.output.show_result(f"{email.id} is published.", raw=email.raw)


@inbound.command("redeliver")
@click.argument("received_id", metavar="ID")
@click.option("--webhook", "webhook_ids", multiple=True, metavar="ID", help="Only to this webhook. Repeatable.")
@pass_invocation
def redeliver(invocation: Invocation, received_id: str, webhook_ids: Sequence[str]) -> None:
    """Post the event of an email to the webhooks again."""
    with invocation.client() as client:
        done = client.inbound.emails.redeliver(received_id, webhook_ids=list(webhook_ids) or None)
    invocation.output.show_result(f"The event is posted to webhooks again: {done.deliveries}.", raw=done.raw)


@inbound.command("reread")
@click.argument("received_id", metavar="ID")
@pass_invocation
def reread(invocation: Invocation, received_id: str) -> None:
    """Read the message of an unreadable email again."""
    with invocation.client() as client:
        done = client.inbound.emails.reread(received_id)
    invocation.output.show_result(f"The message of {received_id} is queued to be read again.", raw=done.raw)


@inbound.command("delete")
@click.argument("received_id", metavar="ID")
@pass_invocation
def delete_received(invocation: Invocation, received_id: str) -> None:
    """Delete a received email with its content and the deliveries of its event."""
    with invocation.client() as client:
        deleted = client.inbound.emails.delete(received_id)
    invocation.output.show_result(f"{received_id} is deleted.", raw=deleted.raw)


@inbound.command("simulate")
@click.option("--to", required=True, metavar="ADDRESS", help="The address that receives it.")
@click.option("--from", "from_", default="ada@example.com", show_default=True, metavar="ADDRESS")
@click.option("--subject", default="A simulated email", show_default=True, metavar="TEXT")
@click.option("--text", default="Hello!", show_default=True, metavar="TEXT")
@click.option("--in-reply-to", metavar="MESSAGE-ID", help="The Message-ID of the email that it answers.")
@click.option("--file", type=click.File("rb"), help="A file with the whole message instead; - for standard input.")
@pass_invocation
def simulate(invocation: Invocation, /, *, to: str, from_: str, file: Optional[IO[bytes]], **fields: Any) -> None:
    """Receive an email as if a mail server had delivered it, for tests without one. Requires a test key.

    \b
    postrider inbound simulate --to support@in.example.com --text "Where is my order?"
    """  # noqa: D301 - click keeps the lines after this character
    raw = file.read() if file else simulated_message(to=to, from_=from_, **fields)
    with invocation.client() as client:
        email = client.inbound.emails.simulate(recipient=to, envelope_from=from_, raw=raw)
    message = f"{email.id} is stored. Read it with `postrider inbound show {email.id}`."
    invocation.output.show_result(message, raw=email.raw)


def simulated_message(*, to: str, from_: str, subject: str, text: str, in_reply_to: Optional[str] = None) -> bytes:
    """Return a message of plain text."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = from_, to, subject
    message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain="simulated.invalid")
    if in_reply_to:
        message["In-Reply-To"] = message["References"] = in_reply_to
    message.set_content(text)
    return message.as_bytes()


def _use(used: int, limit: Optional[int], unit: str) -> str:
    return f"{used:,} {unit}" if limit is None else f"{used:,} of {limit:,} {unit}"


def _write_bytes(invocation: Invocation, content: bytes) -> None:
    """Write a message, without characters that control a terminal if the output is one."""
    if sys.stdout.isatty():
        invocation.output.console.print(plain_lines(content.decode("utf-8", "replace")), soft_wrap=True)
    else:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def _fields_of(email: ReceivedEmail) -> dict[str, Any]:
    answered, spam = email.reply_to_email, email.spam
    return {
        "Id": email.id,
        "Status": email.status,
        "Reason": email.blocked_reason,
        "Received": email.received_at,
        "Recipient": email.recipient,
        "Tag": email.tag,
        "From": sender_of(email),
        "Origin": origin_of(email),
        "To": [one.email for one in email.to],
        "Cc": [one.email for one in email.cc],
        "Subject": email.subject,
        "Automatic": None if email.automatic == "no" else email.automatic,
        "Answers": answered and f"{answered.email_id} to {answered.recipient}",
        "Sent by the recipient": answered and ("yes, proven" if answered.from_recipient else "not proven"),
        "Spam score": spam and f"{spam.score:g} of {spam.threshold:g}",
        "Route": email.route_id,
        "Problems": email.parse_errors,
        "Text": plain_lines(email.reply_text or email.text),
    }
