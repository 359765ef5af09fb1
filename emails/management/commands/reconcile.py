"""manage.py reconcile: are the counters what reconcile computes?"""

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from analytics.reconcile import repair_days, wrong_days
from api.fields import wire_time
from emails.upkeep.reconcile import differences, repair
from lib.ids import to_uuid
from workspaces.models import Workspace


class Command(BaseCommand):
    help = "Count emails and recipients again and compare with the counters; ends with 1 when they differ."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--workspace", metavar="WS", type=_workspace_id, help="one workspace; all of them without it"
        )
        parser.add_argument("--repair", action="store_true", help="correct what differs")

    def handle(self, *args: Any, **options: Any) -> None:
        ids = [options["workspace"]] if options["workspace"] else self.everybody()
        act = _repaired if options["repair"] else _compared
        count = 0
        for sentence in (sentence for workspace_id in ids for sentence in act(workspace_id)):
            count += 1
            self.stdout.write(sentence)
        if count and not options["repair"]:
            raise CommandError(f"{count} counters differ; --repair corrects them.")
        self.stdout.write(f"{count} counters corrected." if count else "Every counter is what reconcile computes.")

    def everybody(self) -> list[str]:
        return list(Workspace.objects.order_by("id").values_list("id", flat=True))


def _workspace_id(text: str) -> str:
    to_uuid(text, prefix="ws_")
    return text


def _compared(workspace_id: str) -> Iterator[str]:
    for one in differences(workspace_id):
        yield f"{workspace_id} {wire_time(one.hour)} {one.key}: counted {one.counted}, found {one.found}"
    for day, key, counted, found in wrong_days(workspace_id):
        yield f"{workspace_id} {day} {key}: the day has {counted}, its hours {found}"


def _repaired(workspace_id: str) -> list[str]:
    sentences = list(_compared(workspace_id))
    if sentences:
        repair(workspace_id)
        repair_days(workspace_id)
    return sentences
