"""Queue statistics of `/v1/queue/stats` (docs/specification.md, Analytics and queue statistics; docs/decisions/0043).

Counting a million waiting rows takes 0.1 s, so large sets are never counted. Accepted, finished and delayed
recipients are in the counters, updated in the transaction that moves the rows. Only claimed entries, and entries
that are due but not yet promoted, are counted from the queue.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from core.counters import counters
from core.counters.counters import CounterChange
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run
from core.lib.ttl_cache import TTLCache
from core.lib.worker.stages import Stage
from core.workspaces.models import Workspace
from emails.states import RecipientCounter

# With a million rows not due the planner expects many due ones and starts parallel workers: that takes 30 ms, the
# count itself 0.02 ms.
DISABLE_PARALLEL_QUERY = "SET LOCAL max_parallel_workers_per_gather = 0"
# One statement, so that all counts come from one snapshot.
STATS = f"""
SELECT (SELECT json_object_agg(key, n)::text FROM ({counters.ALL_TIME_COUNTS}) counted),
       (SELECT count(*) FROM emails_pending WHERE stage = {Stage.LEASED} AND workspace_id = %(workspace)s),
       (SELECT count(*) FROM emails_pending
         WHERE stage = {Stage.WAITING} AND workspace_id = %(workspace)s AND due_at <= now())
     + (SELECT count(*) FROM emails_pending
         WHERE stage = {Stage.SCHEDULED} AND workspace_id = %(workspace)s AND since <= now()),
       (SELECT coalesce(suspended_at, deletes_at) IS NOT NULL FROM workspaces_workspace WHERE id = %(workspace)s)
"""  # noqa: S608 - a constant of analytics


# The hours from now on the axis of the staff's page.
AXIS_HOURS = 24
# A table scan: 0.2 s for a million rows.
OVERVIEW = f"""
SELECT workspace_id, stage, least(greatest(hour, 0), %(axis)s)::int, count(*), min(since) FROM (
    SELECT workspace_id, stage, since, CASE WHEN stage IN ({Stage.WAITING}, {Stage.SCHEDULED}) THEN
           floor(extract(epoch FROM due_at - date_trunc('hour', now(), 'UTC')) / 3600) ELSE 0 END AS hour
      FROM emails_pending) due
 GROUP BY 1, 2, 3
"""  # noqa: S608 - constants


@dataclass
class QueueShare:
    """The recipients of one workspace in the queue by stage.

    percent: the share of the whole queue.
    oldest: the time since which the oldest was first due.
    """

    workspace_id: str
    stages: Counter[Stage] = field(default_factory=Counter)
    percent: float = 0.0
    oldest: datetime | None = None

    @property
    def total(self) -> int:
        return self.stages.total()

    @property
    def by_stage(self) -> dict[str, int]:
        return {stage.name.lower(): self.stages[stage] for stage in Stage}


@dataclass(frozen=True)
class QueueOverview:
    """The queue of all workspaces: their shares, the largest first, and by hours from now the recipients that wait."""

    shares: list[QueueShare]
    retries: Counter[int]
    scheduled: Counter[int]

    @property
    def total(self) -> int:
        return sum(share.total for share in self.shares)

    @property
    def by_stage(self) -> dict[str, int]:
        return {stage.name.lower(): sum(share.stages[stage] for share in self.shares) for stage in Stage}


@dataclass(frozen=True)
class QueueStats:
    """Recipients by queue state: completed and failed over all time, the others now."""

    waiting: int
    active: int
    delayed: int
    completed: int
    failed: int
    paused: int


stats_cache: TTLCache[str, QueueStats] = TTLCache()


def read_queue_stats(workspace: Workspace) -> QueueStats:
    """Return the queue statistics of a workspace, at most one second old."""
    stats = stats_cache.get(workspace.id)
    if stats is None:
        stats = _read(workspace.id)
        stats_cache.set(workspace.id, stats)
    return stats


def read_queue_overview() -> QueueOverview:
    """Return the present queue, by workspace, stage and due hour; the last of AXIS_HOURS has everything later."""
    shares: dict[UUID, QueueShare] = {}
    overview = QueueOverview([], Counter(), Counter())
    for workspace_id, stage, hour, count, oldest in run(OVERVIEW, {"axis": AXIS_HOURS}):
        share = shares.setdefault(workspace_id, QueueShare(from_uuid(workspace_id, prefix="ws_")))
        share.stages[Stage(stage)] += count
        if stage != Stage.SCHEDULED:
            share.oldest = min(oldest, share.oldest or oldest)
        if stage in {Stage.WAITING, Stage.SCHEDULED}:
            (overview.retries if stage == Stage.WAITING else overview.scheduled)[hour] += count
    overview.shares.extend(sorted(shares.values(), key=lambda share: -share.total))
    for share in overview.shares:
        share.percent = 100 * share.total / overview.total
    return overview


def accepted_changes(workspace_id: str, recipients: int, *, delayed: int) -> Iterator[CounterChange]:
    """Return the changes for accepted emails. delayed: their recipients that are scheduled or wait for approval."""
    yield counter_change(RecipientCounter.ACCEPTED, workspace_id, by=recipients)
    if delayed:
        yield counter_change(RecipientCounter.DELAYED, workspace_id, by=delayed)


def cancelled_changes(workspace_id: str, recipients: int, *, delayed: int) -> Iterator[CounterChange]:
    """Return the changes for cancelled emails. delayed: their recipients that were scheduled or waiting."""
    yield counter_change(RecipientCounter.CANCELLED, workspace_id, by=recipients)
    yield counter_change(RecipientCounter.DELAYED, workspace_id, by=-delayed)


def due_changes(workspace_ids: Iterable[str]) -> Iterator[CounterChange]:
    """Return the changes for entries whose schedule or wait has ended; one workspace id per entry."""
    return (counter_change(RecipientCounter.DELAYED, workspace_id, by=-1) for workspace_id in workspace_ids)


def delayed_changes(workspace_ids: Iterable[str]) -> Iterator[CounterChange]:
    """Return the changes for entries that begin to wait; one workspace id per entry."""
    return (counter_change(RecipientCounter.DELAYED, workspace_id) for workspace_id in workspace_ids)


def counter_change(counter: RecipientCounter, workspace_id: str, *, by: int = 1) -> CounterChange:
    return counters.CounterKey(workspace_id, counters.ALL_TIME, counter.value), by


def _read(workspace_id: str) -> QueueStats:
    values: dict[str, Any] = {"workspace": to_uuid(workspace_id, prefix="ws_"), "all_time": counters.ALL_TIME}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(DISABLE_PARALLEL_QUERY)
        cursor.execute(STATS, values)
        counts, active, overdue, is_suspended = cursor.fetchone()
    return _stats(json.loads(counts or "{}"), active=active, overdue=overdue, is_suspended=is_suspended)


def _stats(counts: dict[str, int], *, active: int, overdue: int, is_suspended: bool) -> QueueStats:
    n = {count: counts.get(count, 0) for count in RecipientCounter}
    completed, failed, delayed = (
        n[RecipientCounter.COMPLETED],
        n[RecipientCounter.FAILED],
        n[RecipientCounter.DELAYED] - overdue,
    )
    queued = n[RecipientCounter.ACCEPTED] - n[RecipientCounter.CANCELLED] - completed - failed - active
    if is_suspended:
        return QueueStats(waiting=0, active=active, delayed=0, completed=completed, failed=failed, paused=queued)
    return QueueStats(queued - delayed, active, delayed, completed, failed, paused=0)
