"""Request latency for `/metrics`: a histogram by operation.

With PROMETHEUS_MULTIPROC_DIR, which config/gunicorn.py sets, each process of a server writes to a separate file, and a
scrape of any process reads all files (docs/decisions/0045).
"""

import os

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.multiprocess import MultiProcessCollector

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_registry = CollectorRegistry()
_seconds = Histogram(
    "postrider_request_seconds",
    "Requests to /v1 by operation, such as email-send, and status class.",
    ["operation", "status"],
    buckets=BUCKETS,
    registry=_registry,
)


# Without a label, the file of the process would be created on import, in a directory that may not exist yet.
_unlogged = Counter(
    "postrider_requests_unlogged",
    "Requests that are missing in the request log: buffer or share (of a workspace) full, or unwritten at the end.",
    ["reason"],
    registry=_registry,
)


# The operation of requests that the web server rejects, and why the request log lacks some.
TURNED_AWAY, TURNED_AWAY_STATUSES = "turned-away", ("4xx", "5xx")
UNLOGGED_REASONS = ("buffer", "share", "end")


def begin_at_zero() -> None:
    """Give the counters that rules and dashboards use a value in this process: a rate lacks the change to the first."""
    for status in TURNED_AWAY_STATUSES:
        _seconds.labels(TURNED_AWAY, status)
    for reason in UNLOGGED_REASONS:
        _unlogged.labels(reason)


def observe(operation: str, *, status: int, seconds: float) -> None:
    """Record the duration of a request. operation: the route name, so that both labels have few values."""
    _seconds.labels(operation, f"{status // 100}xx").observe(seconds)


def count_unlogged(count: int, *, reason: str) -> None:
    """Count requests that the request log dropped. reason: buffer, share or end."""
    _unlogged.labels(reason).inc(count)


def observed() -> CollectorRegistry:
    """Return the registry with the observations of all processes of this server."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return _registry
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry
