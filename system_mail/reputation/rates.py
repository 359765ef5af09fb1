"""How often the mail of each workspace comes back, or is called spam: read from the tallies of emails.upkeep.reputation_counters."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from emails.upkeep.reputation_counters import Rated
from lib.ids import from_uuid

# Today, in UTC, and the days before it.
DAYS = 7
# As few complaints or bounces say nothing about the whole.
FEWEST: Mapping[Rated, int] = {Rated.COMPLAINED: 10, Rated.BOUNCED: 50}

# Whole days from the days; the hours serve for the rest of the day on which a suspension began alone. What left in the
# hour in which it began is not judged: a tally has no minutes. OFFSET 0 keeps the planner from reading the tallies of
# all time at once, from end to end, for those of a week.
RATES = """
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
class Rates:
    """Recipients of the last DAYS days since judged_from; counts has how many complained and bounced."""

    workspace_id: str
    judged_from: datetime | None
    sent: int
    counts: Mapping[Rated, int]


def read_rates() -> list[Rates]:
    """Return the rates of the workspaces that may send and that have enough to be judged by."""
    with transaction.atomic(), connection.cursor() as cursor:
        # It grows with the workspaces, and compiling the plan takes longer than a thousand of them.
        cursor.execute("SET LOCAL statement_timeout = 0; SET LOCAL jit = off")
        cursor.execute(RATES, values())
        return [
            Rates(from_uuid(id_, prefix="ws_"), since, sent, {Rated.COMPLAINED: complained, Rated.BOUNCED: bounced})
            for id_, since, sent, complained, bounced in cursor.fetchall()
        ]


def values() -> dict[str, Any]:
    keys = {what.name.lower(): what.value for what in Rated}
    fewest = {f"fewest_{what.name.lower()}": count for what, count in FEWEST.items()}
    return {"days": DAYS, "keys": list(keys.values()), **keys, **fewest}
