"""`postrider tail`, and the events of a workspace without an end."""

import time
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import click

from postrider_client.answers import FeedEvent
from postrider_client.cli.commands import PostriderCommand, pass_invocation
from postrider_client.cli.invocation import Invocation
from postrider_client.cli.output import note
from postrider_client.client import Postrider
from postrider_client.errors import ConnectionFailed, PostriderError
from postrider_client.retries import is_transient, seconds_after

# The server sends a heartbeat every 15 seconds.
SILENCE_SECONDS = 45
SUBJECTS = ("recipient", "to", "email", "name", "domain")
DETAILS = ("reason", "message", "url", "subject")


@click.command(cls=PostriderCommand)
@click.option("--type", "types", multiple=True, metavar="EVENT", help="Only these events, such as bounced. Repeatable.")
@click.option("--after", metavar="CURSOR", help="Begin after this cursor instead of now.")
@pass_invocation
def tail(invocation: Invocation, types: Sequence[str], after: Optional[str]) -> None:
    """Print events when they occur, until Ctrl-C.

    After a lost connection it continues with the next event. The JSON of each event has a `cursor` for --after.
    """
    with invocation.client(timeout_seconds=SILENCE_SECONDS, max_retries=0) as client:
        for event in follow_events(client, after=after, types=types):
            details = _first(event.data, DETAILS)
            invocation.output.show_line(event.created_at, event.event, subject_of(event), details, raw=event.raw)


def follow_events(client: Postrider, *, after: Optional[str], types: Sequence[str]) -> Iterator[FeedEvent]:
    """Yield each event once, from the cursor or from now on, over as many connections as needed.

    Raises the errors that another connection would not solve, such as an invalid key.
    """
    failures = 0
    cursor = after
    while True:
        try:
            # Without a cursor, events before the first one of a second connection would be lost.
            cursor = cursor or client.events.list(after="latest", limit=1).fetch().cursor
            for event in client.events.stream(after=cursor, types=types or None):
                failures = 0
                cursor = event.cursor
                yield event
            raise ConnectionFailed("The server closed the stream.")
        except PostriderError as error:  # noqa: PERF203 - every connection may fail
            failures += 1
            wait = seconds_after(failures, error=error) if is_transient(error) else None
            if wait is None:
                raise
            note(f"The connection is lost: {error} Trying again in {wait:.1f} s.")
            time.sleep(wait)


def subject_of(event: FeedEvent) -> str:
    """Return the address, domain or name that an event is about."""
    return _first(event.data, SUBJECTS)


def _first(data: dict[str, Any], names: Sequence[str]) -> str:
    return next((str(data[name]) for name in names if data.get(name)), "")
