"""Counters of deferred recipients by stream and hour, for alerts (docs/decisions/0384).

As histograms of latencies, which count all recipients with a first attempt, they belong to an id of their own instead
of to the workspace.
"""

from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache

from core.counters import counters
from core.counters.slices import CACHE_SIZE, Dimension, slice_id
from core.lib.ids import from_uuid

# The recipients whose first delivery attempt was deferred, in the hour of the attempt.
DEFERRED = "deferred.first"


@lru_cache(maxsize=CACHE_SIZE)
def deferrals_id(workspace_id: str, *, stream: str = "") -> str:
    """Return the workspace id of the counters of a whole workspace, or of a stream of it other than `main`."""
    return from_uuid(slice_id(workspace_id, Dimension.LATENCY, f"deferred/{stream}"), prefix="ws_")


def deferral_changes(workspace_id: str, *, stream: str, at: datetime) -> Iterator[counters.CounterChange]:
    """Yield the counter changes of a recipient. stream: empty for `main`."""
    yield counters.CounterKey(deferrals_id(workspace_id), at, DEFERRED), 1
    if stream:
        yield counters.CounterKey(deferrals_id(workspace_id, stream=stream), at, DEFERRED), 1
