"""`postrider webhooks listen`: the events of the workspace, posted to a program on this machine."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

import click
import urllib3
from rich.text import Text

from postrider_client.answers import FeedEvent
from postrider_client.cli.commands import PostriderGroup, pass_invocation
from postrider_client.cli.inbound import simulated_message
from postrider_client.cli.invocation import Invocation
from postrider_client.cli.output import note, plain_text
from postrider_client.cli.tail import SILENCE_SECONDS, follow_events, subject_of
from postrider_client.client import Postrider
from postrider_client.errors import NotFound
from postrider_client.signatures import new_webhook_secret, sign_webhook

# The limit of the service for one delivery.
ATTEMPT_SECONDS = 15
# Events that the service does not post to webhooks.
NOT_POSTED = {"queued", "cancelled"}
RECEIVED = "received"
# Bytes of the text and of the HTML of a received email in a webhook.
TEXT_BYTES = 256 * 1024
HEADERS = {"content-type": "application/json", "user-agent": "Postrider-Webhooks/1.2", "accept": "*/*"}


@dataclass(frozen=True)
class ForwardedEvent:
    """The response of the local program. status_code: None without a response, with the reason in `error`."""

    status_code: Optional[int]
    error: Optional[str]
    milliseconds: int

    @property
    def is_success(self) -> bool:
        return self.status_code is not None and 200 <= self.status_code < 300


@click.group(cls=PostriderGroup)
def webhooks() -> None:
    """Receive webhooks on this machine."""


def http_url(value: str) -> str:
    """Return a URL of HTTP. Others are an error before the first event."""
    try:
        parsed = urllib3.util.parse_url(value)
    except urllib3.exceptions.LocationParseError:
        parsed = urllib3.util.Url()
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise click.BadParameter(f"{value!r} is not a URL such as http://localhost:3000/webhooks.")
    return value


@webhooks.command("listen")
@click.option(
    "--forward-to", type=http_url, required=True, metavar="URL", help="Such as http://localhost:3000/webhooks."
)
@click.option("--type", "types", multiple=True, metavar="EVENT", help="Only these events, such as bounced. Repeatable.")
@click.option("--after", metavar="CURSOR", help="Begin after this cursor instead of now.")
@click.option(
    "--secret", envvar="POSTRIDER_WEBHOOK_SECRET", metavar="SECRET", help="Sign with this secret instead of a new one."
)
@click.option("--simulate", metavar="ADDRESS", help="Receive a simulated email to this address first.")
@click.option(
    "--test-key", envvar="POSTRIDER_TEST_API_KEY", metavar="KEY", help="The test key for --simulate of the workspace."
)
@pass_invocation
def listen(
    invocation: Invocation,
    /,
    *,
    forward_to: str,
    types: Sequence[str],
    after: Optional[str],
    secret: Optional[str],
    simulate: Optional[str],
    test_key: Optional[str],
) -> None:
    """Post events to a local program as webhooks, until Ctrl-C.

    The requests have the signatures and the body of webhooks. The secret to verify them is printed first. The program
    reads the events from the service, which needs no access to this machine. Failed requests are not repeated.

    \b
    postrider webhooks listen --forward-to http://localhost:3000/webhooks --simulate support@in.example.com
    """  # noqa: D301 - click keeps the lines after this character
    if simulate and not test_key:
        raise click.UsageError("--simulate needs a test key: pass --test-key, or set POSTRIDER_TEST_API_KEY.")
    secret = secret or new_webhook_secret()
    sign_webhook(b"", secret, message_id="")  # an invalid secret is an error before the first event
    note(f"Webhook secret: {secret}")
    with (
        invocation.client(timeout_seconds=SILENCE_SECONDS, max_retries=0) as client,
        urllib3.PoolManager(retries=False) as pool,
    ):
        note(f"Forwarding events to {forward_to}. Press Ctrl-C to stop.")
        if simulate:
            after = after or client.events.list(after="latest", limit=1).fetch().cursor
            _simulate(invocation, simulate, test_key=test_key)
        for event in follow_events(client, after=after, types=types):
            if types or event.event not in NOT_POSTED:
                members = _members_of(client, event)
                forwarded = forward_event(pool, forward_to, members=members, secret=secret)
                _show(invocation, event, forwarded)


def _simulate(invocation: Invocation, address: str, *, test_key: Optional[str]) -> None:
    raw = simulated_message(to=address, from_="ada@example.com", subject="A simulated email", text="Hello!")
    with Postrider(test_key, base_url=invocation.connection.url) as tester:
        stored = tester.inbound.emails.simulate(recipient=address, envelope_from="ada@example.com", raw=raw)
    note(f"Simulated {stored.id} to {address}.")


def _members_of(client: Postrider, event: FeedEvent) -> dict[str, Any]:
    """Return the body of the webhook for an event. The feed has received emails without their content."""
    members = {name: value for name, value in event.raw.items() if name != "cursor"}
    if event.event != RECEIVED:
        return members
    try:
        email = client.inbound.emails.get(event.data["id"]).raw
    except NotFound:  # it was deleted since
        return members
    cut = {name: _cut(email[name]) for name in ("text", "html")}
    truncated = sorted({*email["truncated"], *(name for name in cut if cut[name] != email[name])})
    # Webhooks are fixed before a received email is forwarded.
    whole = {name: value for name, value in email.items() if name != "forwards"}
    return {**members, "data": {**whole, **cut, "truncated": truncated}}


def _cut(text: str) -> str:
    return text.encode()[:TEXT_BYTES].decode(errors="ignore")


def forward_event(pool: urllib3.PoolManager, url: str, *, members: Mapping[str, Any], secret: str) -> ForwardedEvent:
    """Post an event as the service would, and return the response."""
    body = json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()
    headers = {**HEADERS, **sign_webhook(body, secret, message_id=members["id"])}
    started = time.monotonic()
    status_code: Optional[int] = None
    error: Optional[str] = None
    try:
        timeout = urllib3.Timeout(total=ATTEMPT_SECONDS)
        # The body of the response is not read: it may have no end.
        response = pool.request(
            "POST", url, body=body, headers=headers, redirect=False, timeout=timeout, preload_content=False
        )
        status_code = response.status
        response.close()
    except urllib3.exceptions.HTTPError as problem:
        # The part before the last colon repeats the URL.
        error = str(problem).rpartition(": ")[2]
    return ForwardedEvent(status_code, error, round((time.monotonic() - started) * 1000))


def _show(invocation: Invocation, event: FeedEvent, forwarded: ForwardedEvent) -> None:
    response: Any = forwarded.status_code or forwarded.error
    raw = {
        "id": event.id,
        "type": event.type,
        "cursor": event.cursor,
        "statusCode": forwarded.status_code,
        "error": forwarded.error,
        "milliseconds": forwarded.milliseconds,
    }
    style = "green" if forwarded.is_success else "red"
    shown = Text(plain_text(response), style), f"{forwarded.milliseconds} ms"
    invocation.output.show_line(event.created_at, event.type, subject_of(event), *shown, raw=raw)
