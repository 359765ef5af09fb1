"""Prometheus metrics at `/metrics` (docs/decisions/0045).

Metrics of all processes and machines are read from the database at each scrape, so that every web process returns the
same values; only request latency is specific to a server.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

from django.conf import settings
from django.db import Error
from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from config.health import has_broker, has_database
from config.internal_access import has_internal_access
from console.dashboard.auth.oidc.metrics import read_sign_in_counts
from console.privacy.backlog import read_oldest_seconds
from console.system_mail.canary.status import is_missing, is_paused, last_durations
from console.system_mail.models import CanaryRun, TlsReport
from core.api.latency import observed
from core.counters import counters, latency, smtp_usage
from core.delivery.transports.router import TransportState
from domains.reports.queue import oldest_unread_seconds
from domains.tracking_hosts import count_tracking_hosts
from emails.models import SourceListing
from emails.receivers.pair_status import read_totals
from emails.sending import delivery_health
from emails.sending.transport_status import read_statuses
from emails.sources.own_addresses import watched_addresses, watched_lists
from events import sequencer
from interfaces.inbound.routed import read_reply_counts as read_inbound_counts
from interfaces.submission.metrics import read_reply_counts
from receiving.arrival.usage import total_stored_bytes
from receiving.processing import oldest_stored_seconds
from streams.models import Stream
from webhooks import publishing
from webhooks.sending.queue import lag

log = logging.getLogger("postrider.metrics")

# Pairs of an own address and a block list, of which ten lists have a hundred addresses.
MAX_LISTINGS = 1000


# Field of ReceiverTotals → the kind, the name after postrider_receiver_, and the description.
RECEIVER_METRICS: dict[str, tuple[Any, str, str]] = {
    "waiting": (GaugeMetricFamily, "waiting_recipients", "Recipients that wait for the pace of a receiver."),
    "connections": (GaugeMetricFamily, "connections", "Connections to a receiver that the workers have."),
    "accepted": (CounterMetricFamily, "accepted", "Messages that a receiver has accepted since midnight UTC."),
    "signals": (CounterMetricFamily, "signals", "Replies since midnight UTC by which a receiver asked for less."),
    "new": (GaugeMetricFamily, "new_pairs", "Pairs of a receiver and an address in its first days there."),
}


def queue_depth() -> Metric:
    family = GaugeMetricFamily("postrider_queue_recipients", "Recipients in the queue.", labels=["stage"])
    for stage, count in delivery_health.queue_depth().items():
        family.add_metric([stage], count)
    return family


def oldest_due() -> Metric:
    description = "Seconds since the oldest due recipient became due."
    return GaugeMetricFamily(
        "postrider_queue_oldest_due_seconds", description, value=delivery_health.oldest_due_seconds()
    )


def paused_streams() -> Metric:
    count = Stream.objects.exclude(paused_at=None).count()
    return GaugeMetricFamily("postrider_streams_paused", "Streams that are paused.", value=count)


def outcomes() -> Metric:
    labels = ["transport", "verdict", "reason"]
    family = CounterMetricFamily("postrider_outcomes", "Delivery attempts by outcome.", labels=labels)
    for outcome in delivery_health.read_outcome_counts():
        family.add_metric([outcome.transport, outcome.status, outcome.reason], outcome.count)
    return family


def tls_policies() -> Metric:
    description = "Attempts to domains with MTA-STS or DANE, by result; unverified is a policy that is only tested."
    family = CounterMetricFamily("postrider_tls_policy_attempts", description, labels=["policy", "result"])
    for labels, count in delivery_health.read_policy_counts():
        family.add_metric(labels, count)
    return family


def tls_reports() -> list[Metric]:
    """Return the TLS reports of the last week; nothing without reports."""
    if not settings.TLSRPT_DOMAIN:
        return []
    description = "TLS reports of the last seven days by state."
    family = GaugeMetricFamily("postrider_tls_reports", description, labels=["state"])
    for state, count in TlsReport.objects.count_by_state().items():
        family.add_metric([state], count)
    return [family]


def latencies() -> Metric:
    description = "Seconds from acceptance of a recipient to its first attempt and its outcome; the sum is estimated."
    family = HistogramMetricFamily("postrider_latency_seconds", description, labels=["until"])
    names = {latency.Latency.FIRST_ATTEMPT: "first_attempt", latency.Latency.OUTCOME: "outcome"}
    bounds = [*map(str, latency.BOUNDS), "+Inf"]
    for one, histogram in latency.read_installation().items():
        buckets = list(zip(bounds, accumulate(count for _, count in sorted(histogram.items())), strict=True))
        family.add_metric([names[one]], buckets, sum_value=latency.estimated_sum(histogram))
    return family


def transports() -> Metric:
    description = "Transports by their state, 1 for the present one; of the worker process that fares worst."
    family = GaugeMetricFamily("postrider_transport_state", description, labels=["transport", "state"])
    for status in read_statuses():
        for state in TransportState:
            family.add_metric([status.name, state.value], status.state == state)
    return family


def source_listings() -> Metric:
    description = "Whether a block list has an own address: 1 or 0; of the addresses and lists of the settings."
    family = GaugeMetricFamily("postrider_source_listed", description, labels=["address", "list"])
    answers = SourceListing.objects.of([*map(str, watched_addresses())], lists=watched_lists())
    for listing in answers.exclude(checked_at=None)[:MAX_LISTINGS]:
        family.add_metric([listing.source.address, listing.name], listing.listed_at is not None)
    return family


def receivers() -> list[Metric]:
    """Return the paces of receivers: those of the table, and all others together (docs/decisions/0364)."""
    known = "receivers that are not in the table together are other"
    pairs = GaugeMetricFamily(
        "postrider_receiver_pairs",
        f"Pairs of a source address and a receiver, by their state; {known}.",
        labels=["receiver", "state"],
    )
    totals, sums = read_totals(), defaultdict[str, Counter[str]](Counter)
    for one in totals:
        pairs.add_metric([one.receiver, one.state], one.pairs)
        for measure in RECEIVER_METRICS:
            sums[measure][one.receiver] += getattr(one, measure)
    families: list[Metric] = [pairs]
    for measure, (kind, name, description) in RECEIVER_METRICS.items():
        family = kind(f"postrider_receiver_{name}", description, labels=["receiver"])
        for receiver, count in sums[measure].items():
            family.add_metric([receiver], count)
        families.append(family)
    return families


def submission_replies() -> Metric:
    description = "Replies of the submission server to AUTH, MAIL, RCPT and the message (DATA), by code."
    family = CounterMetricFamily("postrider_submission_replies", description, labels=["command", "code"])
    for labels, count in read_reply_counts():
        family.add_metric(labels, count)
    return family


def smtp_sessions() -> Metric:
    description = "Open SMTP sessions of submission and inbound, times seconds; the rate is their average number."
    return _smtp_counter("postrider_smtp_session_seconds", description, smtp_usage.SESSIONS, labels=["server"])


def smtp_memory() -> Metric:
    description = "Bytes of messages that are being received, times seconds; the rate is their average number."
    return _smtp_counter("postrider_smtp_receiving_byte_seconds", description, smtp_usage.BYTES, labels=["server"])


def smtp_refusals() -> Metric:
    description = "Sessions and messages that exceeded a share and were refused, or ended others."
    return _smtp_counter("postrider_smtp_refused", description, smtp_usage.REFUSED, labels=["server", "share"])


def _smtp_counter(name: str, description: str, measure: str, *, labels: list[str]) -> Metric:
    family = CounterMetricFamily(name, description, labels=labels)
    for values, count in smtp_usage.read_usage(measure):
        family.add_metric(values, count)
    return family


def provider_sign_ins() -> Metric:
    description = "Sign-ins with the identity provider: ok, refused, or unavailable."
    family = CounterMetricFamily("postrider_provider_sign_ins", description, labels=["result"])
    for labels, count in read_sign_in_counts():
        family.add_metric(labels, count)
    return family


def webhook_lag() -> Metric:
    description = "Seconds since the oldest due webhook delivery became due."
    age = lag()
    return GaugeMetricFamily("postrider_webhook_lag_seconds", description, value=age.total_seconds() if age else 0.0)


def event_delay() -> Metric:
    description = "Seconds since the oldest event that is not in the feed, or has no webhook deliveries yet."
    family = GaugeMetricFamily("postrider_event_delay_seconds", description, labels=["reader"])
    family.add_metric(["feed"], sequencer.delay_seconds())
    family.add_metric(["webhooks"], publishing.delay_seconds())
    return family


def inbound_messages() -> Metric:
    description = "Replies of the inbound server to recipients and messages of workspaces, by their meaning."
    family = CounterMetricFamily("postrider_inbound_messages", description, labels=["reply"])
    for labels, count in read_inbound_counts():
        family.add_metric(labels, count)
    return family


def inbound_oldest() -> Metric:
    description = "Seconds since the oldest received message that was not read yet was stored."
    return GaugeMetricFamily("postrider_inbound_oldest_seconds", description, value=oldest_stored_seconds())


def inbound_stored_bytes() -> Metric:
    description = "Bytes of received messages that are stored, counted for each workspace that received them."
    return GaugeMetricFamily("postrider_inbound_stored_bytes", description, value=total_stored_bytes())


def oldest_domain_report() -> Metric:
    description = "Seconds since the oldest DMARC or TLS report that was not read yet was stored."
    return GaugeMetricFamily("postrider_domain_reports_oldest_seconds", description, value=oldest_unread_seconds())


def tracking_hosts() -> Metric:
    family = GaugeMetricFamily("postrider_tracking_hosts", "Tracking hosts of sending domains.", labels=["status"])
    for status, count in count_tracking_hosts().items():
        family.add_metric([status], count)
    return family


def unfolded_deltas() -> Metric:
    description = "Counter deltas not yet folded into counters."
    return GaugeMetricFamily("postrider_tally_deltas_unfolded", description, value=counters.count_unfolded())


def oldest_privacy_request() -> Metric:
    description = "Age of the oldest due erasure or export of a person."
    family = GaugeMetricFamily("postrider_privacy_oldest_due_seconds", description, labels=["kind"])
    for kind, seconds in read_oldest_seconds().items():
        family.add_metric([kind], seconds)
    return family


def canaries() -> list[Metric]:
    """Return the last canary of each transport; nothing without canaries, or while none may leave."""
    if not settings.CANARY_MINUTES or is_paused():
        return []
    runs = list(CanaryRun.objects.newest_ended())
    late = GaugeMetricFamily(
        "postrider_canary_late",
        "Whether the last canary of a transport did not come back in time: 1 or 0.",
        labels=["transport"],
    )
    for run in runs:
        late.add_metric([run.transport], run.is_late)
    durations = GaugeMetricFamily(
        "postrider_canary_seconds",
        "Seconds that the last canary of a transport needed to come back, unless it is late.",
        labels=["transport"],
    )
    for transport, duration in last_durations(runs).items():
        durations.add_metric([transport], duration.total_seconds())
    description = "Whether no canary is sent any more: 1 or 0."
    return [late, durations, GaugeMetricFamily("postrider_canary_missing", description, value=is_missing())]


# Each reads the database; a failing one is left out of the scrape.
METRIC_READERS: tuple[Callable[[], Metric | list[Metric]], ...] = (
    queue_depth,
    oldest_due,
    paused_streams,
    outcomes,
    tls_policies,
    tls_reports,
    latencies,
    transports,
    source_listings,
    receivers,
    submission_replies,
    smtp_sessions,
    smtp_memory,
    smtp_refusals,
    provider_sign_ins,
    webhook_lag,
    event_delay,
    inbound_messages,
    inbound_oldest,
    inbound_stored_bytes,
    oldest_domain_report,
    tracking_hosts,
    unfolded_deltas,
    oldest_privacy_request,
    canaries,
)


class MetricsCollector(Collector):
    def collect(self) -> Iterator[Metric]:
        is_up = has_database()
        yield GaugeMetricFamily("postrider_up", "Whether the database responds.", value=is_up)
        yield GaugeMetricFamily("postrider_redis_up", "Whether Redis responds.", value=has_broker())
        for read_metric in METRIC_READERS if is_up else ():
            try:
                found = read_metric()
                yield from found if isinstance(found, list) else [found]
            except Error:
                log.exception("a metric could not be read")


def metrics(request: HttpRequest) -> HttpResponse:
    if not has_internal_access(request):
        message = "Request metrics from this machine, or send METRICS_TOKEN as Authorization: Bearer.\n"
        return HttpResponse(message, status=403, content_type="text/plain; charset=utf-8")
    registry = CollectorRegistry()
    registry.register(MetricsCollector())
    return HttpResponse(generate_latest(registry) + generate_latest(observed()), content_type=CONTENT_TYPE_LATEST)
