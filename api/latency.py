"""How long requests take, for `/metrics`: a histogram by operation.

With PROMETHEUS_MULTIPROC_DIR, which config/gunicorn.py sets, every process of a server writes to a file of its own
and a scrape, whichever process answers it, reads all of them (docs/decisions/0045).
"""

import os

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.multiprocess import MultiProcessCollector

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_registry = CollectorRegistry()
_seconds = Histogram(
    "postrider_request_seconds",
    "Requests to /v1 by operation, such as email-send, and kind of answer.",
    ["operation", "status"],
    buckets=BUCKETS,
    registry=_registry,
)


def observe(operation: str, *, status: int, seconds: float) -> None:
    """operation: the name of the route. Both labels come from small sets, whatever callers ask for."""
    _seconds.labels(operation, f"{status // 100}xx").observe(seconds)


def observed() -> CollectorRegistry:
    """Return what all processes of this server have observed."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return _registry
    everybody = CollectorRegistry()
    MultiProcessCollector(everybody)  # type: ignore[no-untyped-call]
    return everybody
