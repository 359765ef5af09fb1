"""Counts of the emails of streams in the last 30 days, in one statement for all streams of a workspace."""

from collections import Counter
from collections.abc import Iterable
from uuid import UUID

from core.api.errors import NotFound
from core.counters import counters
from core.counters.slices import Dimension, slice_id
from core.workspaces.models import Workspace
from streams.models import MAIN, Stream
from streams.services import read_streams

# Today, in UTC, and the days before.
PERIOD_DAYS = 30
# Cancelled emails are never sent, scheduled ones not yet.
EXCLUDED = ("status.cancelled", "status.scheduled")
KEYS = {
    "reached.delivered": "delivered",
    "reached.bounced": "bounced",
    "reached.opened": "opened",
    "reached.clicked": "clicked",
    "rated.complained": "complained",
    "simulated.complained": "complained",
}
# Rows without a slice are those of the whole workspace.
READ = f"""
SELECT slice, key, sum(n)::bigint FROM (
    SELECT slice, key, count AS n FROM analytics_slice
     WHERE slice = ANY(%(slices)s::uuid[]) AND day >= {counters.FIRST_DAY}
    UNION ALL
    SELECT slice, key, change FROM analytics_tallydelta CROSS JOIN unnest(slices) AS slice
     WHERE workspace_id = %(workspace)s AND slice = ANY(%(slices)s::uuid[])
       AND hour >= {counters.FIRST_DAY}::timestamp AT TIME ZONE 'UTC'
    UNION ALL
    SELECT NULL, key, n FROM ({counters.DAILY_COUNTS}) of_workspace
) counted
 WHERE key = ANY(%(keys)s) OR starts_with(key, 'status.') GROUP BY slice, key
"""  # noqa: S608 - constants


def add_counts(workspace: Workspace, streams: Iterable[Stream]) -> list[Stream]:
    """Set `counts` of streams. streams: all of the workspace, since `main` has what is in none of the others."""
    rows = list(streams)
    slices = {slice_id(workspace.id, Dimension.STREAM, row.slug): row for row in rows if row.slug != MAIN}
    counts = _read(workspace, list(slices))
    others: Counter[str] = Counter()
    for slice_, row in slices.items():
        row.counts = counts[slice_]
        others.update(row.counts)
    for row in rows:
        if row.slug == MAIN:
            row.counts = {name: number - others[name] for name, number in counts[None].items()}
    return rows


def get_counted_stream(workspace: Workspace, slug: str) -> Stream:
    """Return a stream with its counts. Raises NotFound."""
    for stream in add_counts(workspace, read_streams(workspace).values()):
        if stream.slug == slug:
            return stream
    raise NotFound


def _read(workspace: Workspace, slices: list[UUID]) -> dict[UUID | None, dict[str, int]]:
    counts: dict[UUID | None, dict[str, int]] = {
        slice_: dict.fromkeys(("total", *KEYS.values()), 0) for slice_ in (None, *slices)
    }
    for slice_, key, number in counters.read(READ, workspace.id, slices=slices, keys=list(KEYS), days=PERIOD_DAYS):
        if key not in EXCLUDED:
            counts[slice_][KEYS.get(key, "total")] += number
    return counts
