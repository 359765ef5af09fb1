"""Health of a webhook endpoint: the success rate and the response times of its newest deliveries."""

from dataclasses import dataclass

from lib.ids import to_uuid
from lib.sql import run
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
