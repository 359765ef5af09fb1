"""Bounce and complaint rates of workspaces and bulk streams, from the counters of analytics.reputation.counting."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from analytics.reputation.counting import ReputationCounter
from core.counters.slices import stream_slice_sql
from core.lib.ids import from_uuid
from streams.models import Stream

# Today, in UTC, and the six days before.
PERIOD_DAYS = 7
# Fewer complaints or bounces are too few to judge a workspace or a stream by.
MINIMUM_COUNTS: Mapping[ReputationCounter, int] = {ReputationCounter.COMPLAINED: 10, ReputationCounter.BOUNCED: 50}

FIRST_DAY = "(date_trunc('day', now(), 'UTC') - make_interval(days => %(days)s - 1))"
SUMS = """
       coalesce(sum(n) FILTER (WHERE key = %(sent)s), 0)::bigint AS sent,
       coalesce(sum(n) FILTER (WHERE key = %(complained)s), 0)::bigint AS complained,
       coalesce(sum(n) FILTER (WHERE key = %(bounced)s), 0)::bigint AS bounced
"""
ENOUGH = "complained >= %(fewest_complained)s OR bounced >= %(fewest_bounced)s"
# Whole days come from the daily counters. Hourly counters are read only for the rest of the day on which judged_from
# lies, from the next full hour on, because counters have no minutes. OFFSET 0 keeps the planner from scanning the
# counters of all time for those of one week. Emails of a paused stream, and those that a stream sent before it was
# resumed, are subtracted. Slices are counted by day, so such a workspace is judged from the next full day on.
READ_RATES = f"""
WITH excluded AS (
    SELECT workspace_id, {stream_slice_sql("s")} AS slice,
           CASE WHEN paused_at IS NULL THEN (judged_from AT TIME ZONE 'UTC')::date ELSE 'infinity' END AS last_day
      FROM streams_stream s WHERE paused_at IS NOT NULL OR judged_from >= {FIRST_DAY}
), span AS (
    SELECT id, judged_from, greatest({FIRST_DAY}, CASE
               WHEN EXISTS (SELECT FROM excluded WHERE workspace_id = w.id)
               THEN date_trunc('day', judged_from, 'UTC') + interval '1 day'
               ELSE date_trunc('hour', judged_from, 'UTC') + interval '1 hour' END) AS start
      FROM workspaces_workspace w WHERE suspended_at IS NULL
), judged AS (
    SELECT *, date_trunc('day', start + interval '23 hours', 'UTC') AS morning FROM span
), excluded_days AS (
    SELECT id, slice, (start AT TIME ZONE 'UTC')::date AS first_day, last_day, start
      FROM judged JOIN excluded ON workspace_id = id
), counted AS (
    SELECT judged.id, key, n FROM judged CROSS JOIN LATERAL (
        SELECT key, count AS n FROM analytics_tallyday
         WHERE workspace_id = judged.id AND day >= (morning AT TIME ZONE 'UTC')::date AND key = ANY(%(keys)s)
        OFFSET 0) days
    UNION ALL
    SELECT judged.id, key, n FROM judged CROSS JOIN LATERAL (
        SELECT key, count AS n FROM analytics_tally
         WHERE workspace_id = judged.id AND hour >= start AND hour < morning AND key = ANY(%(keys)s)
        OFFSET 0) hours WHERE start < morning
    UNION ALL
    SELECT judged.id, key, change FROM judged JOIN analytics_tallydelta ON workspace_id = judged.id
     WHERE hour >= start AND key = ANY(%(keys)s)
    UNION ALL
    SELECT e.id, key, -n FROM excluded_days e CROSS JOIN LATERAL (
        SELECT key, count AS n FROM analytics_slice
         WHERE slice = e.slice AND day BETWEEN first_day AND last_day AND key = ANY(%(keys)s)
        OFFSET 0) days
    UNION ALL
    SELECT e.id, key, -change FROM excluded_days e JOIN analytics_tallydelta ON workspace_id = e.id
     WHERE hour >= start AND (hour AT TIME ZONE 'UTC')::date <= last_day AND key = ANY(%(keys)s)
       AND slices @> ARRAY[e.slice]
), summed AS (
    SELECT id, {SUMS} FROM counted GROUP BY id
)
SELECT id, '', judged_from, sent, complained, bounced FROM summed JOIN judged USING (id) WHERE {ENOUGH} ORDER BY id
"""  # noqa: S608 - constants
# Judges from the first full day after a pause was lifted.
READ_STREAM_RATES = f"""
WITH judged AS (
    SELECT s.workspace_id, s.slug, s.judged_from, {stream_slice_sql("s")} AS slice,
           greatest({FIRST_DAY}, date_trunc('day', s.judged_from, 'UTC') + interval '1 day',
                    date_trunc('day', w.judged_from, 'UTC') + interval '1 day') AS start
      FROM streams_stream s JOIN workspaces_workspace w ON w.id = s.workspace_id
     WHERE s.kind = '{Stream.Kind.BULK}' AND s.paused_at IS NULL AND w.suspended_at IS NULL
), counted AS (
    SELECT slice, key, n FROM judged CROSS JOIN LATERAL (
        SELECT key, count AS n FROM analytics_slice
         WHERE slice = judged.slice AND day >= (start AT TIME ZONE 'UTC')::date AND key = ANY(%(keys)s)
        OFFSET 0) days
    UNION ALL
    SELECT slice, key, change FROM judged JOIN analytics_tallydelta d ON d.workspace_id = judged.workspace_id
     WHERE hour >= start AND key = ANY(%(keys)s) AND slices @> ARRAY[slice]
), summed AS (
    SELECT slice, {SUMS} FROM counted GROUP BY slice
)
SELECT workspace_id, slug, judged_from, sent, complained, bounced FROM summed JOIN judged USING (slice)
 WHERE {ENOUGH} ORDER BY workspace_id, slug
"""  # noqa: S608 - constants


@dataclass(frozen=True)
class ReputationRates:
    """Recipients of the last PERIOD_DAYS days since judged_from.

    counts: complained and bounced recipients.
    stream: whose recipients these are; empty for those of the workspace.
    """

    workspace_id: str
    judged_from: datetime | None
    sent: int
    counts: Mapping[ReputationCounter, int]
    stream: str = ""


def read_rates() -> list[ReputationRates]:
    """Return the rates of workspaces that may send and have reached one of MINIMUM_COUNTS.

    Without the emails of streams that are paused, and those that a stream sent before it was resumed.
    """
    return _read(READ_RATES)


def read_stream_rates() -> list[ReputationRates]:
    """Return the rates of bulk streams that may send and have reached one of MINIMUM_COUNTS."""
    return _read(READ_STREAM_RATES)


def _read(sql: str) -> list[ReputationRates]:
    with transaction.atomic(), connection.cursor() as cursor:
        # The run time grows with the workspaces; JIT compilation takes longer than reading a thousand of them.
        cursor.execute("SET LOCAL statement_timeout = 0; SET LOCAL jit = off")
        cursor.execute(sql, rates_parameters())
        return [
            ReputationRates(
                from_uuid(id_, prefix="ws_"),
                since,
                sent,
                {ReputationCounter.COMPLAINED: complained, ReputationCounter.BOUNCED: bounced},
                stream,
            )
            for id_, stream, since, sent, complained, bounced in cursor.fetchall()
        ]


def rates_parameters() -> dict[str, Any]:
    """Return the parameters of READ_RATES and READ_STREAM_RATES."""
    keys = {counter.name.lower(): counter.value for counter in ReputationCounter}
    fewest = {f"fewest_{counter.name.lower()}": count for counter, count in MINIMUM_COUNTS.items()}
    return {"days": PERIOD_DAYS, "keys": list(keys.values()), **keys, **fewest}
