"""manage.py reread_unreadable: queue the received messages that could not be read to be read again."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand

from core.lib.datetimes import parse_datetime
from core.lib.ids import to_uuid
from core.lib.progress import ProgressBar
from receiving.unread.rereading import JOINT_GAP, UnreadableMessages


class Command(BaseCommand):
    help = (
        "Queue the received messages that could not be read to be read again, ten a second, such as after a fault or "
        "an upgrade. Emails whose message is readable now are published with their content. Safe to run again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workspace", metavar="WS", type=_workspace_id, help="id of a workspace; default: all")
        parser.add_argument("--since", metavar="TIME", type=_time, help="only messages received since then, in UTC")
        parser.add_argument("--dry-run", action="store_true", help="only count them")

    def handle(self, *args: Any, workspace: str | None, since: datetime | None, **options: Any) -> None:
        messages = UnreadableMessages(workspace_id=workspace, since=since)
        total = messages.count()
        if options["dry_run"]:
            self.stdout.write(f"{total} messages could not be read.")
            return
        queued = 0
        with ProgressBar("Messages", total=total) as bar:
            for count in messages.reread():
                queued += count
                bar.advance(count)
        seconds = round(queued * JOINT_GAP.total_seconds())
        self.stdout.write(f"{queued} messages are queued to be read again, within {seconds} s.")


def _workspace_id(text: str) -> str:
    to_uuid(text, prefix="ws_")
    return text


def _time(text: str) -> datetime:
    if time := parse_datetime(text):
        return time
    raise ArgumentTypeError(f"{text!r} is not a time such as 2027-01-01T00:00:00Z.")
