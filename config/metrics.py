"""`/metrics` for Prometheus (docs/decisions/0045).

What happens in several processes on several machines is read from the database at the scrape, so that every web
process tells the same; only how long requests take is a server's own.
"""

import logging
from collections.abc import Callable, Iterator

from django.db import Error, connection
from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from analytics import counters
from api.latency import observed
from config.health import has_broker
from config.internal_access import is_insider
from emails.sending import delivery_health
from webhooks.sending.queue import lag

log = logging.getLogger("postrider.metrics")


def queue_depth() -> Metric:
    family = GaugeMetricFamily("postrider_queue_recipients", "Recipients in the queue.", labels=["stage"])
    for stage, count in delivery_health.depth().items():
        family.add_metric([stage], count)
    return family


def oldest_due() -> Metric:
    told = "For how long the recipient that is due longest has been due."
    return GaugeMetricFamily("postrider_queue_oldest_due_seconds", told, value=delivery_health.oldest_due_seconds())


def outcomes() -> Metric:
    labels = ["transport", "verdict", "reason"]
    family = CounterMetricFamily("postrider_outcomes", "Attempts to send, by what became of them.", labels=labels)
    for one in delivery_health.outcomes():
        family.add_metric([one.transport, one.verdict, one.reason], one.count)
    return family


def webhook_lag() -> Metric:
    told = "For how long the delivery to a webhook that is due longest has been due."
    age = lag()
    return GaugeMetricFamily("postrider_webhook_lag_seconds", told, value=age.total_seconds() if age else 0.0)


def unfolded_deltas() -> Metric:
    told = "Changes of counters that beat has yet to fold."
    return GaugeMetricFamily("postrider_tally_deltas_unfolded", told, value=counters.unfolded())


# Each reads the database; one that fails is left out of the scrape.
FIGURES: tuple[Callable[[], Metric], ...] = (queue_depth, oldest_due, outcomes, webhook_lag, unfolded_deltas)


class Figures(Collector):
    def collect(self) -> Iterator[Metric]:
        is_up = has_database()
        yield GaugeMetricFamily("postrider_up", "Whether the database answers.", value=is_up)
        yield GaugeMetricFamily("postrider_redis_up", "Whether Redis answers.", value=has_broker())
        for figure in FIGURES if is_up else ():
            try:
                yield figure()
            except Error:
                log.exception("a figure could not be read")


def metrics(request: HttpRequest) -> HttpResponse:
    if not is_insider(request):
        told = "Metrics are for this machine alone, or for who sends METRICS_TOKEN as Authorization: Bearer.\n"
        return HttpResponse(told, status=403, content_type="text/plain; charset=utf-8")
    registry = CollectorRegistry()
    registry.register(Figures())
    return HttpResponse(generate_latest(registry) + generate_latest(observed()), content_type=CONTENT_TYPE_LATEST)


def has_database() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        return False
    return True
