"""Counts of the emails of one stream, by day of creation (docs/decisions/0186)."""

from typing import Any

from core.counters.slices import Dimension, slice_id
from core.workspaces.models import Workspace
from streams.models import MAIN
from streams.services import existing_stream, read_streams

# No email is in two streams.
IN_SLICES = """
    SELECT day, key, count AS n FROM analytics_slice
     WHERE slice = ANY(%(slices)s::uuid[]) AND day >= {first} AND day < {end}
    UNION ALL
    SELECT (hour AT TIME ZONE 'UTC')::date, key, change FROM analytics_tallydelta
     WHERE workspace_id = %(workspace)s AND slices && %(slices)s::uuid[]
       AND hour >= {first}::timestamp AT TIME ZONE 'UTC' AND hour < {end}::timestamp AT TIME ZONE 'UTC'
"""
IN_NO_SLICE = """
    SELECT day, key, count AS n FROM analytics_tallyday
     WHERE workspace_id = %(workspace)s AND day >= {first} AND day < {end}
    UNION ALL
    SELECT day, key, -count FROM analytics_slice
     WHERE slice = ANY(%(slices)s::uuid[]) AND day >= {first} AND day < {end}
    UNION ALL
    SELECT (hour AT TIME ZONE 'UTC')::date, key, change FROM analytics_tallydelta
     WHERE workspace_id = %(workspace)s AND NOT slices && %(slices)s::uuid[]
       AND hour >= {first}::timestamp AT TIME ZONE 'UTC' AND hour < {end}::timestamp AT TIME ZONE 'UTC'
"""


def stream_counts(workspace: Workspace, stream: str, *, first: str, end: str) -> tuple[str, dict[str, Any]]:
    """Return SQL for rows (day, key, n) of a stream, and its values. Raises StreamNotFound.

    first, end: SQL of the first day and of the day after the last one.
    """
    names = read_streams(workspace).keys() - {MAIN} if stream == MAIN else {existing_stream(workspace, stream).slug}
    sql = IN_NO_SLICE if stream == MAIN else IN_SLICES
    slices = [slice_id(workspace.id, Dimension.STREAM, name) for name in names]
    return sql.format(first=first, end=end), {"slices": slices}
