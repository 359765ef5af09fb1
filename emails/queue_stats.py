"""The queue's counters: what `/v1/queue/stats` tells (CONTRACT section 9, docs/decisions/0043).

A million waiting rows take a tenth of a second to count. So nothing large is counted: who came, went and
waits for a time of its own is in the tallies, written in the transaction that moved the rows, and only what
is claimed, or due and not yet promoted, is counted where it lies.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db import connection, transaction

from analytics import counters
from emails.states import HANDED_OVER, State
from lib.ids import to_uuid
from lib.ttl_cache import Recent
from workspaces.models import Workspace

Change = tuple[counters.CounterKey, int]


class Count(StrEnum):
    """Recipients of a workspace since it began; delayed are those whose row is scheduled or waiting now."""

    ACCEPTED = "recipients.accepted"
    COMPLETED = "recipients.completed"
    FAILED = "recipients.failed"
    CANCELLED = "recipients.cancelled"
    DELAYED = "recipients.delayed"


# Beside a million rows that are not due, the planner expects many that are, and workers to help with them: starting
# those takes 30 ms, the count 0.02.
ALONE = "SET LOCAL max_parallel_workers_per_gather = 0"
# One statement, so that the parts belong to one moment.
STATS = f"""
SELECT (SELECT json_object_agg(key, n)::text FROM ({counters.SINCE_EVER}) counted),
       (SELECT count(*) FROM emails_pending WHERE stage = 2 AND workspace_id = %(workspace)s),
       (SELECT count(*) FROM emails_pending WHERE stage = 0 AND workspace_id = %(workspace)s AND due_at <= now())
     + (SELECT count(*) FROM emails_pending WHERE stage = 3 AND workspace_id = %(workspace)s AND since <= now()),
       (SELECT suspended_at IS NOT NULL FROM workspaces_workspace WHERE id = %(workspace)s)
"""  # noqa: S608 - a constant of analytics


@dataclass(frozen=True)
class Stats:
    """Recipients by what becomes of them now, or became of them since the workspace began."""

    waiting: int
    active: int
    delayed: int
    completed: int
    failed: int
    paused: int


recent: Recent[str, Stats] = Recent()


def read_stats(workspace: Workspace) -> Stats:
    """Return the counters of a workspace, at most a second old."""
    found = recent.get(workspace.id)
    if found is None:
        found = _read(workspace.id)
        recent.keep(workspace.id, found)
    return found


def accepted(workspace_id: str, recipients: int, *, status: State) -> Iterator[Change]:
    yield change(Count.ACCEPTED, workspace_id, by=recipients)
    if status is State.SCHEDULED:
        yield change(Count.DELAYED, workspace_id, by=recipients)


def cancelled(workspace_id: str, recipients: int) -> Iterator[Change]:
    yield change(Count.CANCELLED, workspace_id, by=recipients)
    yield change(Count.DELAYED, workspace_id, by=-recipients)


def due(workspace_ids: Iterable[str]) -> Iterator[Change]:
    """Count rows whose schedule or wait has ended, each by its workspace."""
    return (change(Count.DELAYED, workspace_id, by=-1) for workspace_id in workspace_ids)


def later(workspace_ids: Iterable[str]) -> Iterator[Change]:
    """Count rows that begin to wait, each by its workspace."""
    return (change(Count.DELAYED, workspace_id) for workspace_id in workspace_ids)


def finished(state: State) -> Count:
    """Return what a recipient without work left counts as, by the state that it is in."""
    return Count.COMPLETED if state in HANDED_OVER else Count.FAILED


def change(count: Count, workspace_id: str, *, by: int = 1) -> Change:
    return counters.CounterKey(workspace_id, counters.ALL_TIME, count.value), by


def _read(workspace_id: str) -> Stats:
    values: dict[str, Any] = {"workspace": to_uuid(workspace_id, prefix="ws_"), "ever": counters.ALL_TIME}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(ALONE)
        cursor.execute(STATS, values)
        counts, active, overdue, is_suspended = cursor.fetchone()
    return _stats(json.loads(counts or "{}"), active=active, overdue=overdue, is_suspended=is_suspended)


def _stats(counts: dict[str, int], *, active: int, overdue: int, is_suspended: bool) -> Stats:
    n = {count: counts.get(count, 0) for count in Count}
    completed, failed, delayed = n[Count.COMPLETED], n[Count.FAILED], n[Count.DELAYED] - overdue
    held = n[Count.ACCEPTED] - n[Count.CANCELLED] - completed - failed - active
    if is_suspended:
        return Stats(waiting=0, active=active, delayed=0, completed=completed, failed=failed, paused=held)
    return Stats(held - delayed, active, delayed, completed, failed, paused=0)
