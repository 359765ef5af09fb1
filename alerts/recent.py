"""Latencies and deferrals of the present hour and the one before, for alerts (docs/decisions/0384)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping

from alerts.models import Alert
from alerts.watched_value import Amount, Share, WatchedValue, WatchedValues
from core.counters.deferrals import DEFERRED, deferrals_id
from core.counters.latency import Latency, histogram_id, parse_name, percentile
from core.lib.ids import to_uuid
from core.lib.sql import local_settings, run
from streams.models import MAIN, Stream

# Among fewer recipients, one or two decide a percentile and a share.
MINIMUM_RECIPIENTS = 20
# Counters of a stream instead of a workspace; see core.counters.latency.
READ_COUNTS = """
SELECT workspace_id, key, sum(n)::bigint FROM (
    SELECT workspace_id, key, count AS n FROM analytics_tally
     WHERE workspace_id = ANY(%(ids)s) AND hour >= date_trunc('hour', now(), 'UTC') - interval '1 hour'
    UNION ALL
    SELECT workspace_id, key, change FROM analytics_tallydelta
     WHERE workspace_id = ANY(%(ids)s) AND hour >= date_trunc('hour', now(), 'UTC') - interval '1 hour'
) counted GROUP BY 1, 2
"""


def read_recent(alerts: Collection[Alert]) -> WatchedValues:
    """Return the values of alerts on latencies and deferrals, in at most two queries."""
    main = {alert.workspace_id for alert in alerts if alert.stream == MAIN}
    others = _other_streams(main) if main else {}
    named = {(alert.workspace_id, alert.stream) for alert in alerts if alert.stream != MAIN}
    counts = _read_counts({*named, *others, *((id_, "") for id_ in main)})
    for workspace_id in main:
        streams = (counts[scope] for scope in others if scope[0] == workspace_id)
        # `main` is what no other stream has.
        counts[workspace_id, MAIN] = counts[workspace_id, ""] - sum(streams, Counter())
    return {alert.id: VALUES[alert.metric](counts[alert.workspace_id, alert.stream]) for alert in alerts}


def _latency(counts: Counter[str]) -> WatchedValue | None:
    """Return the seconds within which 95 % of the recipients had an outcome."""
    histogram = _histogram(counts, Latency.OUTCOME)
    total = histogram.total()
    seconds = percentile(histogram, 0.95) if total >= MINIMUM_RECIPIENTS else None
    return None if seconds is None else Amount.of(seconds, total=total)


def _deferred_share(counts: Counter[str]) -> WatchedValue | None:
    """Return the share of the recipients with a first attempt that were deferred by it."""
    total = _histogram(counts, Latency.FIRST_ATTEMPT).total()
    return Share(min(counts[DEFERRED], total), total) if total >= MINIMUM_RECIPIENTS else None


VALUES: Mapping[str, Callable[[Counter[str]], WatchedValue | None]] = {
    Alert.WatchedMetric.LATENCY_P95: _latency,
    Alert.WatchedMetric.DEFERRED_SHARE: _deferred_share,
}


def _histogram(counts: Counter[str], latency: Latency) -> Counter[int]:
    names = {key: parse_name(key) for key in counts if key != DEFERRED}
    return Counter({bucket: counts[key] for key, (name, bucket) in names.items() if name is latency})


def _other_streams(workspace_ids: Collection[str]) -> list[tuple[str, str]]:
    """Return the streams of workspaces other than `main`: the workspace and the slug of each."""
    streams = Stream.objects.filter(workspace__in=workspace_ids).exclude(slug=MAIN).order_by()
    return list(streams.values_list("workspace", "slug"))


def _read_counts(scopes: Iterable[tuple[str, str]]) -> defaultdict[tuple[str, str], Counter[str]]:
    """Return the counts of workspaces and streams by workspace id and stream, empty for the whole workspace."""
    ids = {to_uuid(id_, prefix="ws_"): scope for scope in scopes for id_ in _ids(*scope)}
    counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    with local_settings({"jit": "off"}):
        for id_, key, count in run(READ_COUNTS, {"ids": list(ids)}):
            counts[ids[id_]][key] = count
    return counts


def _ids(workspace_id: str, stream: str) -> tuple[str, str]:
    """Return the workspace ids under which a stream is counted."""
    return histogram_id(workspace_id, stream=stream), deferrals_id(workspace_id, stream=stream)
