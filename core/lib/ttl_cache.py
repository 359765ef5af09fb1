"""In-process cache of values, such as database rows, each for a limited time."""

import threading
import time
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

TTL_SECONDS = 1.0
MAX_ENTRIES = 10_000


class TTLCache(Generic[K, V]):
    """Values by key, each for ttl_seconds. Misses are not cached: a caller could fill the cache with them."""

    def __init__(self, *, ttl_seconds: float = TTL_SECONDS) -> None:
        self.ttl_seconds = ttl_seconds
        self._entries: dict[K, tuple[V, float]] = {}
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        return entry[0] if entry and time.monotonic() - entry[1] < self.ttl_seconds else None

    def set(self, key: K, value: V) -> None:
        with self._lock:
            if key not in self._entries and len(self._entries) >= MAX_ENTRIES:
                self._entries.clear()
            self._entries[key] = value, time.monotonic()

    def clear(self) -> None:
        self._entries.clear()
