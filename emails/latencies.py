"""Latencies of recipients, grouped for their histograms (docs/decisions/0380)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings

from core.counters.latency import Latency, TimedGroup, bucket_of
from core.delivery.transports.simulator import is_simulated
from emails.recipient_moves import MovedRecipient
from streams.models import MAIN


@dataclass(frozen=True)
class TimedRecipient:
    """A recipient of a live email, and its latencies that ended, in seconds.

    The time that the sender asked for is in none: a claim has the time since which its entry was due.
    """

    recipient: MovedRecipient
    workspace_id: str
    stream: str
    times: Iterable[tuple[Latency, float]]


def count_latencies(timed: Iterable[TimedRecipient]) -> Counter[TimedGroup]:
    """Count recipients by group and bucket; those of the simulator take no time that says anything."""
    counts: Counter[TimedGroup] = Counter()
    for one in timed:
        if is_simulated(one.recipient.address, domain=settings.SIMULATOR_DOMAIN):
            continue
        stream = "" if one.stream == MAIN else one.stream
        receiver = settings.RECEIVERS.find(one.recipient.receiver or "")
        for latency, seconds in one.times:
            group = TimedGroup(one.workspace_id, stream, receiver.key if receiver else "", latency, bucket_of(seconds))
            counts[group] += 1
    return counts
