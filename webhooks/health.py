"""Health of webhook endpoints: outcomes, last deliveries and response times of their newest deliveries."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.utils import timezone

from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run
from webhooks.models import Webhook

NEWEST = 200
READ = """
SELECT count(*), count(*) FILTER (WHERE error = ''),
       percentile_disc(0.5) WITHIN GROUP (ORDER BY (attempts -> -1 ->> 'durationMs')::int),
       percentile_disc(0.95) WITHIN GROUP (ORDER BY (attempts -> -1 ->> 'durationMs')::int)
  FROM (SELECT attempt_count, error, attempts FROM webhooks_webhookdelivery WHERE webhook_id = %s
         ORDER BY created_at DESC, id DESC LIMIT %s) newest
 WHERE attempt_count > 0
"""
# Newest first; without the attempts, which may have 4 kB each.
READ_HISTORIES = """
SELECT endpoint, max(newest.created_at), coalesce(array_agg(newest.error = '' ORDER BY newest.created_at DESC)
                                            FILTER (WHERE newest.attempt_count > 0), '{}')
  FROM unnest(%s::uuid[]) AS chosen (endpoint) CROSS JOIN LATERAL (
       SELECT created_at, attempt_count, error FROM webhooks_webhookdelivery WHERE webhook_id = endpoint
        ORDER BY created_at DESC, id DESC LIMIT %s) newest
 GROUP BY endpoint
"""
# The newest of the last CHART_DAYS days, by hours of a time zone.
READ_OUTCOMES = """
SELECT date_trunc('hour', created_at, %s) AS hour, status, count(*) FROM (
       SELECT created_at, status FROM webhooks_webhookdelivery WHERE webhook_id = %s AND created_at >= %s
        ORDER BY created_at DESC, id DESC LIMIT %s) newest
 GROUP BY hour, status
"""
CHART_DAYS = 14
# If COUNTED deliveries go back for fewer days, the chart has hours, at most this number of them.
MIN_CHART_DAYS, CHART_HOURS = 2, 48
COUNTED = 10_000
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# Bars of a sparkline, and its height.
BARS = 20
BAR_HEIGHT = 20


@dataclass(frozen=True)
class DeliveryHistory:
    """The newest deliveries of an endpoint with an attempt, at most NEWEST, newest first: whether each succeeded."""

    last_at: datetime | None = None
    results: list[bool] = field(default_factory=list)

    @property
    def success_percent(self) -> float | None:
        return 100 * sum(self.results) / len(self.results) if self.results else None

    @property
    def bars(self) -> list[tuple[int, int, int]]:
        """Return the bars of a sparkline, the oldest deliveries first: number, height in BAR_HEIGHT, and percent.

        Each has the same number of deliveries, at least one; its height is the part that succeeded, at least 1.
        """
        size = max(len(self.results) // BARS, 1)
        groups = [self.results[start : start + size] for start in range(0, min(len(self.results), BARS * size), size)]
        rates = [sum(group) / len(group) for group in reversed(groups)]
        return [(number, max(round(BAR_HEIGHT * rate), 1), round(100 * rate)) for number, rate in enumerate(rates)]


def read_histories(webhooks: Collection[Webhook]) -> dict[str, DeliveryHistory]:
    """Return the newest deliveries of each endpoint that has any, by its id, in one query."""
    ids = [to_uuid(webhook.id, prefix="wh_") for webhook in webhooks]
    rows = run(READ_HISTORIES, [ids, NEWEST])
    return {from_uuid(id_, prefix="wh_"): DeliveryHistory(last_at, results) for id_, last_at, results in rows}


@dataclass(frozen=True)
class EndpointHealth:
    """The last attempts of the newest deliveries, at most NEWEST. The response times are None without any."""

    attempted: int
    succeeded: int
    median_ms: int | None
    p95_ms: int | None

    @property
    def success_percent(self) -> float | None:
        return 100 * self.succeeded / self.attempted if self.attempted else None


def read_health(webhook: Webhook) -> EndpointHealth:
    ((attempted, succeeded, median_ms, p95_ms),) = run(READ, [to_uuid(webhook.id, prefix="wh_"), NEWEST])
    return EndpointHealth(attempted, succeeded, median_ms, p95_ms)


@dataclass(frozen=True)
class DeliveryOutcomes:
    """The deliveries of an endpoint by the day or the hour in which they were created.

    counts: the start of each period in the active time zone, oldest first → the number of deliveries by status.
    is_cut: whether older periods are left out, because only COUNTED deliveries are read.
    """

    counts: dict[datetime, Counter[str]]
    by_day: bool
    is_cut: bool

    @property
    def total(self) -> int:
        return sum(counts.total() for counts in self.counts.values())


def read_outcomes(webhook: Webhook) -> DeliveryOutcomes:
    """Return the outcomes of the last CHART_DAYS days, or of the hours that the newest COUNTED deliveries cover."""
    now = timezone.localtime()
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    first = _days_before(today, CHART_DAYS - 1)
    rows = run(READ_OUTCOMES, [str(now.tzinfo), to_uuid(webhook.id, prefix="wh_"), first, COUNTED])
    hours = [(timezone.localtime(hour), status, count) for hour, status, count in rows]
    is_cut = sum(count for _hour, _status, count in hours) >= COUNTED
    # The oldest hour and the oldest day may lack some of their deliveries.
    oldest = min(hour for hour, _status, _count in hours) if is_cut else first
    days = [day for day in (_days_before(today, number) for number in reversed(range(CHART_DAYS))) if day >= oldest]
    if len(days) >= MIN_CHART_DAYS:
        return DeliveryOutcomes(_count(days, hours), by_day=True, is_cut=is_cut)
    this_hour = now.replace(minute=0, second=0, microsecond=0)
    starts = [this_hour - HOUR * number for number in reversed(range(CHART_HOURS))]
    return DeliveryOutcomes(
        _count([start for start in starts if start > oldest] or [this_hour], hours), by_day=False, is_cut=True
    )


def _days_before(today: datetime, number: int) -> datetime:
    """Return the midnight of a number of days before, by the calendar: a day may have 23 or 25 hours."""
    return timezone.make_aware(today.replace(tzinfo=None) - DAY * number)


def _count(starts: Collection[datetime], hours: Iterable[tuple[datetime, str, int]]) -> dict[datetime, Counter[str]]:
    """Sum hours by the period in which they lie. starts: of consecutive periods, oldest first."""
    counts: dict[datetime, Counter[str]] = {start: Counter() for start in starts}
    for hour, status, count in hours:
        if start := max((start for start in starts if start <= hour), default=None):
            counts[start][status] += count
    return counts
