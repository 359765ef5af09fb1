"""Values that alerts watch: rates and the quota from the counters and the usage, never from emails.

See docs/decisions/0246. Each of the other metrics has a module of its own.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from alerts.models import Alert
from alerts.recent import VALUES, read_recent
from alerts.sends import read_silences
from alerts.waiting import read_waiting
from alerts.watched_value import Share, WatchedValue, WatchedValues
from analytics.outcomes import OUTCOMES, RATED
from analytics.reputation.rates import PERIOD_DAYS
from core.counters import counters
from core.counters.slices import stream_slice_sql
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import local_settings, run
from streams.models import MAIN

# The least total of a rate, as in the charts (docs/decisions/0260): one bounce of ten emails says nothing.
MINIMUM_TOTAL = 100


@dataclass(frozen=True)
class CountedRate:
    """A rate: the counters of its parts, and of its total."""

    parts: Collection[str]
    total: Collection[str]


RATES: Mapping[str, CountedRate] = {
    Alert.WatchedMetric.BOUNCE_RATE: CountedRate(RATED["bounced"], RATED["sent"]),
    Alert.WatchedMetric.COMPLAINT_RATE: CountedRate(RATED["complained"], RATED["sent"]),
    Alert.WatchedMetric.FAILURE_RATE: CountedRate(
        OUTCOMES["failed"], [key for name, keys in OUTCOMES.items() if name != "queued" for key in keys]
    ),
}
KEYS = sorted({key for rate in RATES.values() for key in (*rate.parts, *rate.total)})
# A scope is a workspace or one of its streams. `main` has no slice: its emails are those in no other stream's slice.
# OFFSET 0 keeps the planner from scanning the counters of all time for those of one week.
READ_COUNTS = f"""
WITH watched AS (
    SELECT DISTINCT workspace_id, slug FROM unnest(%(workspaces)s::uuid[], %(slugs)s::text[]) AS w (workspace_id, slug)
), scope AS (
    SELECT workspace_id, slug, CASE slug WHEN '' THEN '{{}}' WHEN '{MAIN}' THEN ARRAY(
               SELECT {stream_slice_sql("s")} FROM streams_stream s
                WHERE s.workspace_id = watched.workspace_id AND s.slug <> '{MAIN}')
           ELSE ARRAY[{stream_slice_sql("watched")}] END AS slices
      FROM watched
), counted AS (
    SELECT workspace_id, slug, key, n FROM scope CROSS JOIN LATERAL (
        SELECT key, count AS n FROM analytics_tallyday
         WHERE workspace_id = scope.workspace_id AND day >= {counters.FIRST_DAY} AND key = ANY(%(keys)s)
        OFFSET 0) days WHERE slug IN ('', '{MAIN}')
    UNION ALL
    SELECT workspace_id, slug, key, CASE slug WHEN '{MAIN}' THEN -n ELSE n END FROM scope CROSS JOIN LATERAL (
        SELECT key, count AS n FROM analytics_slice
         WHERE slice = ANY(scope.slices) AND day >= {counters.FIRST_DAY} AND key = ANY(%(keys)s)
        OFFSET 0) days
    UNION ALL
    SELECT scope.workspace_id, slug, key, change FROM scope JOIN analytics_tallydelta d
        ON d.workspace_id = scope.workspace_id AND hour >= {counters.FIRST_DAY}::timestamp AT TIME ZONE 'UTC'
       AND key = ANY(%(keys)s) AND (slug = '' OR (d.slices && scope.slices) = (slug <> '{MAIN}'))
)
SELECT workspace_id, slug, key, sum(n)::bigint FROM counted GROUP BY 1, 2, 3
"""  # noqa: S608 - constants
READ_USAGE = """
SELECT workspace_id, used FROM workspaces_usage
 WHERE workspace_id = ANY(%s) AND month = date_trunc('month', now() AT TIME ZONE 'UTC')::date
"""


def _read_rates(alerts: Collection[Alert]) -> WatchedValues:
    counts = _read_counts({(alert.workspace_id, alert.stream) for alert in alerts})
    return {
        alert.id: _rate(RATES[alert.metric], counts.get((alert.workspace_id, alert.stream), Counter()))
        for alert in alerts
    }


def _rate(rate: CountedRate, counts: Mapping[str, int]) -> WatchedValue | None:
    part, total = (sum(counts[key] for key in keys) for keys in (rate.parts, rate.total))
    return Share(part, total) if total >= MINIMUM_TOTAL else None


def _read_counts(scopes: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Counter[str]]:
    """Return the counts of the last PERIOD_DAYS days by workspace id and stream."""
    workspaces, slugs = zip(*sorted(scopes), strict=True)
    values = {
        "workspaces": [to_uuid(workspace_id, prefix="ws_") for workspace_id in workspaces],
        "slugs": list(slugs),
        "keys": KEYS,
        "days": PERIOD_DAYS,
    }
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    # The run time grows with the alerts of the batch; JIT compilation takes longer than reading a thousand of them.
    with local_settings({"jit": "off"}):
        for workspace_id, slug, key, count in run(READ_COUNTS, values):
            counts[from_uuid(workspace_id, prefix="ws_"), slug][key] = count
    return counts


def _read_quotas(alerts: Collection[Alert]) -> WatchedValues:
    ids = {to_uuid(alert.workspace_id, prefix="ws_") for alert in alerts}
    used = dict(run(READ_USAGE, [list(ids)]))
    return {alert.id: _quota(alert, used.get(to_uuid(alert.workspace_id, prefix="ws_"), 0)) for alert in alerts}


def _quota(alert: Alert, used: int) -> WatchedValue | None:
    limit = alert.workspace.limits.emails_per_month
    return Share(used, limit) if limit else None


# Each reads the values of alerts of its metrics in a number of queries that does not depend on the alerts.
READERS: Mapping[str, Callable[[Collection[Alert]], WatchedValues]] = {
    **dict.fromkeys(RATES, _read_rates),
    **dict.fromkeys(VALUES, read_recent),
    Alert.WatchedMetric.QUOTA_USED: _read_quotas,
    Alert.WatchedMetric.WAITING: read_waiting,
    Alert.WatchedMetric.SILENT: read_silences,
}


def read_values(alerts: Collection[Alert]) -> WatchedValues:
    """Return the values of alerts, in at most three queries for each kind of value. alerts: with their workspaces."""
    groups = defaultdict[Callable[[Collection[Alert]], WatchedValues], list[Alert]](list)
    for alert in alerts:
        groups[READERS[alert.metric]].append(alert)
    return {id_: value for read, group in groups.items() for id_, value in read(group).items()}
