"""Bounce and complaint rates of workspaces, read from the counters of reputation.counting."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from lib.ids import from_uuid
from reputation.counting import ReputationCounter

# Today, in UTC, and the six days before.
PERIOD_DAYS = 7
# Fewer complaints or bounces are too few to judge a workspace by.
MINIMUM_COUNTS: Mapping[ReputationCounter, int] = {ReputationCounter.COMPLAINED: 10, ReputationCounter.BOUNCED: 50}

# Whole days come from the daily counters. Hourly counters are read only for the rest of the day on which judged_from
# lies, from the next full hour on, because counters have no minutes. OFFSET 0 keeps the planner from scanning the
# counters of all time for those of one week.
READ_RATES = """
WITH span AS (
    SELECT id, judged_from, greatest(
               date_trunc('day', now(), 'UTC') - make_interval(days => %(days)s - 1),
               date_trunc('hour', judged_from, 'UTC') + interval '1 hour') AS start
      FROM workspaces_workspace WHERE suspended_at IS NULL
), judged AS (
    SELECT *, date_trunc('day', start + interval '23 hours', 'UTC') AS morning FROM span
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
), summed AS (
    SELECT id, coalesce(sum(n) FILTER (WHERE key = %(sent)s), 0)::bigint AS sent,
           coalesce(sum(n) FILTER (WHERE key = %(complained)s), 0)::bigint AS complained,
           coalesce(sum(n) FILTER (WHERE key = %(bounced)s), 0)::bigint AS bounced
      FROM counted GROUP BY id
)
SELECT id, judged_from, sent, complained, bounced FROM summed JOIN judged USING (id)
 WHERE complained >= %(fewest_complained)s OR bounced >= %(fewest_bounced)s ORDER BY id
"""


@dataclass(frozen=True)
class ReputationRates:
    """Recipients of the last PERIOD_DAYS days since judged_from. counts: complained and bounced recipients."""

    workspace_id: str
    judged_from: datetime | None
    sent: int
    counts: Mapping[ReputationCounter, int]


def read_rates() -> list[ReputationRates]:
    """Return the rates of workspaces that may send and have reached one of MINIMUM_COUNTS."""
    with transaction.atomic(), connection.cursor() as cursor:
        # The run time grows with the workspaces; JIT compilation takes longer than reading a thousand of them.
        cursor.execute("SET LOCAL statement_timeout = 0; SET LOCAL jit = off")
        cursor.execute(READ_RATES, rates_parameters())
        return [
            ReputationRates(
                from_uuid(id_, prefix="ws_"),
                since,
                sent,
                {ReputationCounter.COMPLAINED: complained, ReputationCounter.BOUNCED: bounced},
            )
            for id_, since, sent, complained, bounced in cursor.fetchall()
        ]


def rates_parameters() -> dict[str, Any]:
    """Return the parameters of READ_RATES."""
    keys = {counter.name.lower(): counter.value for counter in ReputationCounter}
    fewest = {f"fewest_{counter.name.lower()}": count for counter, count in MINIMUM_COUNTS.items()}
    return {"days": PERIOD_DAYS, "keys": list(keys.values()), **keys, **fewest}
