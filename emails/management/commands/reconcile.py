"""manage.py reconcile: recompute the counters from the rows and compare."""

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.counters.reconcile import find_wrong_days, repair_days
from core.lib.datetimes import format_datetime
from core.lib.ids import to_uuid
from core.lib.progress import track
from core.workspaces.models import Workspace
from emails.upkeep.reconcile import count_slice_differences, find_differences, repair_counters, repair_slices


class Command(BaseCommand):
    help = "Recompute the counters from emails and recipients and compare. The exit status is 1 if they differ."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workspace", metavar="WS", type=_workspace_id, help="id of a workspace; default: all")
        parser.add_argument("--repair", action="store_true", help="correct the counters that differ")

    def handle(self, *args: Any, **options: Any) -> None:
        every = Workspace.objects.order_by("id").values_list("id", flat=True)
        ids = [options["workspace"]] if options["workspace"] else list(every)
        reconcile = _repair if options["repair"] else _compare
        tracked = track(ids, label="Workspaces", total=len(ids))
        lines = [line for workspace_id in tracked for line in reconcile(workspace_id)]
        self.stdout.writelines(f"{line}\n" for line in lines)
        count = len(lines)
        if count and not options["repair"]:
            raise CommandError(f"{count} counters differ. Run with --repair to correct them.")
        self.stdout.write(f"{count} counters corrected." if count else "All counters match.")


def _workspace_id(text: str) -> str:
    to_uuid(text, prefix="ws_")
    return text


def _compare(workspace_id: str) -> Iterator[str]:
    for counter in find_differences(workspace_id):
        hour = format_datetime(counter.hour)
        yield f"{workspace_id} {hour} {counter.key}: counted {counter.counted}, found {counter.found}"
    for day, key, daily, hourly in find_wrong_days(workspace_id):
        yield f"{workspace_id} {day} {key}: the day has {daily}, its hours {hourly}"
    if count := count_slice_differences(workspace_id):
        yield f"{workspace_id}: {count} counts by tag, template or domain differ"


def _repair(workspace_id: str) -> list[str]:
    lines = list(_compare(workspace_id))
    if lines:
        repair_counters(workspace_id)
        repair_days(workspace_id)
        repair_slices(workspace_id)
    return lines
