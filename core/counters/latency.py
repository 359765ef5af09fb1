"""Histograms of latencies: the bounds of their buckets, the keys of their counters, and percentiles.

A histogram counts recipients by the time that they took, in the hour in which the time ended. The counters of a
histogram belong to it instead of to the workspace, so that reading the counters of a workspace costs no more with them.
See docs/decisions/0380.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache

from core.counters import counters
from core.counters.process_counts import read_process_counts
from core.counters.slices import CACHE_SIZE, Dimension, slice_id
from core.lib.ids import from_uuid

# The upper bounds of the buckets in seconds, each at most 1.25 times the one before; times above the last one have a
# bucket of their own. 10 s, 60 s and 10 min are bounds, so that the shares within them are exact. Keys of stored
# counters have the positions of the bounds.
BOUNDS = (
    0.1, 0.1245, 0.1551, 0.1931, 0.2404, 0.2994, 0.3728, 0.4642, 0.578, 0.7197, 0.8962, 1.116, 1.389, 1.73, 2.154,
    2.683, 3.34, 4.16, 5.179, 6.449, 8.031, 10, 12.2, 14.89, 18.17, 22.17, 27.06, 33.02, 40.29, 49.17, 60, 73.97, 91.19,
    112.4, 138.6, 170.9, 210.7, 259.7, 320.2, 394.8, 486.7, 600, 746, 927.5, 1153, 1434, 1783, 2217, 2756, 3427, 4261,
    5298, 6587, 8189, 10180, 12660, 15740, 19570, 24330, 30260, 37620, 46770, 58150, 72310, 89900, 111800, 139000,
    172800,
)  # fmt: skip
# The first part of keys: latency.first.21 counts times above BOUNDS[20], up to BOUNDS[21].
PREFIX = "latency"

# The number of recipients by bucket.
Histogram = Mapping[int, int]


class Latency(StrEnum):
    """Latencies of a recipient, from the time that its email was due to be sent.

    FIRST_ATTEMPT: until its first delivery attempt began.
    OUTCOME: until it left the queue: a server accepted its message, or it bounced or failed.
    """

    FIRST_ATTEMPT = "first"
    OUTCOME = "outcome"


@dataclass(frozen=True)
class TimedGroup:
    """Recipients of a workspace that are counted together.

    stream: empty for `main`, whose histograms are those of the workspace without those of its other streams.
    receiver: the key of a receiver of the table; empty for others, whose histograms are computed in the same way.
    """

    workspace_id: str
    stream: str
    receiver: str
    latency: Latency
    bucket: int


@lru_cache(maxsize=CACHE_SIZE)
def histogram_id(workspace_id: str, *, stream: str = "", receiver: str = "") -> str:
    """Return the workspace id of the counters of a histogram: of a whole workspace, a stream or a receiver of it."""
    value = f"stream/{stream}" if stream else f"receiver/{receiver}" if receiver else ""
    return from_uuid(slice_id(workspace_id, Dimension.LATENCY, value), prefix="ws_")


def bucket_of(seconds: float) -> int:
    """Return the bucket of a time; the last one is len(BOUNDS)."""
    return bisect_left(BOUNDS, seconds)


def counter_name(latency: Latency, bucket: int) -> str:
    """Return the key of the counter of a bucket."""
    return f"{PREFIX}.{latency}.{bucket}"


def parse_name(key: str) -> tuple[Latency, int]:
    """Return the latency and the bucket of a key."""
    _, latency, bucket = key.split(".")
    return Latency(latency), int(bucket)


def latency_changes(counts: Mapping[TimedGroup, int], *, at: datetime) -> Iterator[counters.CounterChange]:
    """Yield the counter changes of recipients: of their histograms, and of that of the installation."""
    for group, count in counts.items():
        key = counter_name(group.latency, group.bucket)
        yield counters.CounterKey(histogram_id(group.workspace_id), at, key), count
        if group.stream:
            yield counters.CounterKey(histogram_id(group.workspace_id, stream=group.stream), at, key), count
        if group.receiver:
            yield counters.CounterKey(histogram_id(group.workspace_id, receiver=group.receiver), at, key), count
        yield counters.CounterKey(counters.SERVICE, counters.ALL_TIME, key), count


def read_installation() -> dict[Latency, Histogram]:
    """Return the histograms of all workspaces over all time."""
    buckets = range(len(BOUNDS) + 1)
    histograms: dict[Latency, dict[int, int]] = {latency: dict.fromkeys(buckets, 0) for latency in Latency}
    for (latency, bucket), count in read_process_counts(PREFIX, known=()):
        histograms[Latency(latency)][int(bucket)] = count
    return {**histograms}


def estimated_sum(histogram: Histogram) -> float:
    """Return the seconds of all recipients together, each at the middle of its bucket."""
    return sum(count * sum(_bounds_of(bucket)) / 2 for bucket, count in histogram.items())


def percentile(histogram: Histogram, share: float) -> float | None:
    """Return the seconds within which a share of the recipients were; None without any.

    Within its bucket it is interpolated, as histogram_quantile of Prometheus does. share: above 0, at most 1.
    """
    rank, counted = share * sum(histogram.values()), 0
    for bucket, count in sorted(histogram.items()):
        if count and counted + count >= rank:
            lower, upper = _bounds_of(bucket)
            return round(lower + (upper - lower) * (rank - counted) / count, 3)
        counted += count
    return None


def share_within(histogram: Histogram, seconds: float) -> float | None:
    """Return the share of the recipients that took at most a time of BOUNDS; None without any."""
    total = sum(histogram.values())
    within = sum(count for bucket, count in histogram.items() if bucket <= BOUNDS.index(seconds))
    return within / total if total else None


def _bounds_of(bucket: int) -> tuple[float, float]:
    """Return the bounds of a bucket; those of the last one are equal."""
    return (BOUNDS[bucket - 1] if bucket else 0.0), BOUNDS[min(bucket, len(BOUNDS) - 1)]
