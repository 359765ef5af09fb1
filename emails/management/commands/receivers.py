"""manage.py receivers: the table of receivers in force, and the paces of sending to them."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.delivery.receivers import Receiver
from core.lib.datetimes import format_datetime
from emails.models import ReceiverPace
from emails.receivers.changes import LEAST_RATE, MOST_RATE, pin_rate, release_pair, suspend_pair, unpin_rate
from emails.receivers.pair_status import PairStatus, find_pairs, read_pair_statuses
from emails.receivers.states import PairState

TABLE_HEADING = ("key", "name", "connections", "messages each", "a minute", "tls", "mail hosts")
PAIRS_HEADING = (
    "receiver", "source", "state", "since", "connections", "a minute", "waiting", "accepted", "slowed", "warm-up",
    "last reply",
)  # fmt: skip
# Pairs of a list; filters find the others.
MAX_PAIRS = 200
DONE = {
    "suspend": "No new delivery begins within ten seconds: {}.",
    "release": "Email is sent again, and the rate is learnt anew: {}.",
    "pin": "The rate is set: {}.",
    "unpin": "The learnt rate applies: {}.",
}


class Command(BaseCommand):
    help = (
        "Check RECEIVERS_FILE and print the table of receivers in force (check); list the paces of sending (list); "
        "suspend a receiver, release it, set its rate (pin), or let it be learnt again (unpin)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("check", help="exit with 1 and the error if RECEIVERS_FILE is wrong")
        listed = actions.add_parser("list", help=f"at most {MAX_PAIRS} pairs of a receiver and a source address")
        listed.add_argument("--receiver", default="", help="a part of its name")
        listed.add_argument("--state", default="", choices=PairState.values)
        for name in DONE:
            action = actions.add_parser(name)
            action.add_argument("receiver", help="its key, as in the list")
            action.add_argument("--source", help="one of its source addresses, as in the list; all by default")
            if name == "pin":
                action.add_argument("per_minute", type=int, help="messages a minute")

    def handle(self, *args: Any, **options: Any) -> None:
        action = options["action"]
        if action == "check":
            # Django's checks, which run first, report a mistake in the file.
            receivers = (settings.RECEIVERS.default, *settings.RECEIVERS.receivers)
            self._write([TABLE_HEADING, *map(_receiver_row, receivers)])
        elif action == "list":
            pairs = find_pairs(receiver=options["receiver"], state=options["state"])
            self._write([PAIRS_HEADING, *map(_pair_row, read_pair_statuses(list(pairs[:MAX_PAIRS])))])
        else:
            self._change(**options)

    def _change(self, action: str, *, receiver: str, source: str | None, **options: Any) -> None:
        pairs = ReceiverPace.objects.filter(receiver=receiver).order_by("source")
        if source is not None:
            pairs = pairs.filter(source=source)
        if not pairs:
            raise CommandError(
                f"No email has been sent to {receiver!r} lately. manage.py receivers list shows the keys."
            )
        change = {"suspend": suspend_pair, "release": release_pair, "unpin": unpin_rate}.get(action)
        for pair in pairs:
            (change or partial(pin_rate, per_minute=_valid_rate(options["per_minute"])))(pair)
            self.stdout.write(DONE[action].format(pair))

    def _write(self, rows: Sequence[Sequence[str]]) -> None:
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
        for row in rows:
            self.stdout.write(_line(row, widths))


def _valid_rate(per_minute: int) -> int:
    if not LEAST_RATE <= per_minute <= MOST_RATE:
        raise CommandError(f"The rate must be from {LEAST_RATE} to {MOST_RATE} messages a minute.")
    return per_minute


def _receiver_row(one: Receiver) -> tuple[str, ...]:
    numbers = (one.connections, one.messages_per_connection, one.per_minute or "no limit")
    return (one.key, one.name, *map(str, numbers), one.tls or "as others", ", ".join(one.mx) or "all others")


def _pair_row(one: PairStatus) -> tuple[str, ...]:
    since = format_datetime(one.since) if one.since else "-"
    rate = "no limit" if one.per_minute is None else f"{one.per_minute:.0f}"
    numbers = map(str, (one.waiting, one.accepted, one.slowed))
    connections = f"{one.connections} of {one.allowed}"
    rate = f"{rate} (pinned)" if one.pinned else rate
    warm_up = "-" if one.number is None else f"day {one.day}, {one.number} messages"
    state = f"{one.state} (listed)" if one.is_listed else one.state
    return (one.receiver, one.source or "any", state, since, connections, rate, *numbers, warm_up, one.reply or "-")


def _line(row: Iterable[str], widths: Sequence[int]) -> str:
    *cells, last = row
    padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
    return "  ".join([*padded, last])
