"""Expiring set of host names."""

import time
from collections import OrderedDict


class ExpiringSet:
    """Names that each expire after ttl_seconds; beyond max_size the oldest is dropped."""

    def __init__(self, *, ttl_seconds: float, max_size: int = 10_000) -> None:
        self._ttl_seconds = ttl_seconds
        self._max_size = max_size
        self._expires_at: OrderedDict[str, float] = OrderedDict()

    def __contains__(self, name: str) -> bool:
        return self._expires_at.get(name, 0.0) > time.monotonic()

    def add(self, name: str) -> None:
        """Add a name, or restart its time."""
        self._expires_at[name] = time.monotonic() + self._ttl_seconds
        self._expires_at.move_to_end(name)
        if len(self._expires_at) > self._max_size:
            self._expires_at.popitem(last=False)
