"""`postrider send`."""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Optional

import click

from postrider_client.attachments import Attachment
from postrider_client.cli.commands import PostriderCommand, pass_invocation
from postrider_client.cli.invocation import Invocation
from postrider_client.cli.output import plain_lines

DURATION = re.compile(r"([0-9]{1,6})([smhd]?)")
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
TEXT_FILE = click.File("r", encoding="utf-8")


def json_object(value: str) -> dict[str, Any]:
    """Parse a JSON object, such as the data of a template."""
    try:
        data = json.loads(value)
    except ValueError as error:
        raise click.BadParameter(f"This is not valid JSON: {error}.") from error
    if not isinstance(data, dict):
        raise click.BadParameter('This is not a JSON object, such as {"name": "Ada"}.')
    return data


def local_time(value: str) -> datetime:
    """Parse a time in ISO 8601; without a time zone it is local."""
    try:
        return datetime.fromisoformat(value.replace("Z", "+00:00")).astimezone()
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a time such as 2026-12-01T09:00.") from None


def seconds(value: str) -> int:
    """Parse a number of seconds, or a time such as 10m."""
    match = DURATION.fullmatch(value)
    if not match:
        raise click.BadParameter(f"{value!r} is not a time such as 600 or 10m.")
    return int(match[1]) * UNITS[match[2]]


@click.command(cls=PostriderCommand)
@click.option("--from", "from_", required=True, metavar="ADDRESS", help="The sender, such as 'Shop <hi@example.com>'.")
@click.option("--to", multiple=True, metavar="ADDRESS", help="A recipient. Repeatable; optional with --cc or --bcc.")
@click.option("--cc", multiple=True, metavar="ADDRESS", help="Repeatable.")
@click.option("--bcc", multiple=True, metavar="ADDRESS", help="Repeatable.")
@click.option(
    "--envelope",
    multiple=True,
    metavar="ADDRESS",
    help="An address of --to, --cc or --bcc that receives the email; the others are only shown. Repeatable.",
)
@click.option("--reply-to", multiple=True, metavar="ADDRESS", help="Repeatable.")
@click.option("--subject", metavar="TEXT")
@click.option("--text", metavar="TEXT", help="The plain text; read from standard input without other content.")
@click.option("--text-file", type=TEXT_FILE, help="A file with the plain text; - for standard input.")
@click.option("--html", metavar="HTML")
@click.option("--html-file", type=TEXT_FILE, help="A file with the HTML; - for standard input.")
@click.option("--template", "template_id", metavar="ID", help="The id or alias of a template.")
@click.option("--data", type=json_object, metavar="JSON", help="Values of the template.")
@click.option("--data-file", type=TEXT_FILE, help="A JSON file with values of the template.")
@click.option("--locale", metavar="TAG", help="The language of the email, such as de-AT.")
@click.option("--attach", multiple=True, type=click.Path(exists=True, dir_okay=False), help="A file. Repeatable.")
@click.option(
    "--alternative",
    "alternatives",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    help="A file that is another form of the email, such as the invitation meeting.ics. Repeatable.",
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Repeatable.")
@click.option("--metadata", type=json_object, metavar="JSON", help="Values that events and webhooks repeat.")
@click.option(
    "--schedule", "scheduled_for", type=local_time, metavar="TIME", help="Send later, such as 2026-12-01T09:00."
)
@click.option(
    "--deliver-within",
    type=seconds,
    metavar="TIME",
    help="Not sent after this time, such as 10m, counted from now or --schedule; 30s to 7d.",
)
@click.option(
    "--expires-at", type=local_time, metavar="TIME", help="Not sent after this time, such as 2026-12-01T09:30."
)
@click.option(
    "--tls",
    type=click.Choice(["opportunistic", "required"]),
    help="required: sent only over TLS to a verified mail host; by default as the sending domain has it.",
)
@click.option("--stream", metavar="ID", help="The stream; by default main, or the only one of the API key.")
@click.option(
    "--reply-tracking",
    is_flag=True,
    default=None,
    help="Receive the answers, matched to this email. Not with --reply-to.",
)
@click.option(
    "--in-reply-to", "in_reply_to_id", metavar="ID", help="Answer this received email; --to and --subject are optional."
)
@click.option("--idempotency-key", metavar="KEY", help="A workspace accepts one email per key.")
@click.option("--dry-run", is_flag=True, help="Validate and render the email without sending it.")
@pass_invocation
def send(
    invocation: Invocation,
    /,
    *,
    text_file: Optional[IO[str]],
    html_file: Optional[IO[str]],
    data_file: Optional[IO[str]],
    data: Optional[dict[str, Any]],
    attach: Sequence[str],
    alternatives: Sequence[str],
    dry_run: bool,
    **options: Any,
) -> None:
    """Send an email, now or at a later time.

    \b
    postrider send --from hello@example.com --to ada@example.com --subject Hi --text "Hello Ada"
    postrider send --from hello@example.com --to ada@example.com --template welcome --data '{"name": "Ada"}'
    """  # noqa: D301 - click keeps the lines after this character
    fields = {name: value for name, value in options.items() if value not in (None, ())}
    if not fields.keys() & {"to", "cc", "bcc", "in_reply_to_id"}:
        raise click.UsageError("Pass --to, or --in-reply-to with the id of a received email.")
    if not fields.keys() & {"to", "in_reply_to_id"}:
        fields["to"] = ()
    fields |= {name: file.read() for name, file in (("text", text_file), ("html", html_file)) if file}
    if data_file:
        data = json_object(data_file.read())
    if data is not None:
        fields["template_data"] = data
    files = [Attachment.from_path(Path(path)) for path in attach]
    files += [replace(Attachment.from_path(Path(path)), alternative=True) for path in alternatives]
    if files:
        fields["attachments"] = files
    if not fields.keys() & {"text", "html", "template_id"}:
        fields["text"] = _text_from_stdin()
    with invocation.client() as client:
        if dry_run:
            checked = client.emails.check(**fields)
            shown = {"Subject": checked.subject, "Text": plain_lines(checked.text), "HTML": plain_lines(checked.html)}
            invocation.output.show_fields(shown, raw=checked.raw)
            return
        accepted = client.emails.send(**fields)
    held = f" It waits for approval until {accepted.raw['held']['expiresAt']}." if accepted.held else ""
    message = f"{accepted.id} is {accepted.status}.{held} Follow it with `postrider emails show {accepted.id}`."
    invocation.output.show_result(message, raw=accepted.raw)
    for warning in accepted.warnings or ():
        invocation.output.warn(warning.message)


def _text_from_stdin() -> str:
    if sys.stdin.isatty():
        raise click.UsageError("Pass --text, --html or --template, or the text on standard input.")
    return sys.stdin.read()
