"""Health of webhook endpoints: success rates, last deliveries and response times of their newest deliveries."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

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
