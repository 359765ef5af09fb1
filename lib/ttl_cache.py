"""What was read from the database a moment ago, kept by a process for at most a second."""

import threading
import time
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

SECONDS = 1.0
SIZE = 10_000


class Recent(Generic[K, V]):
    """Values by key, each for SECONDS. Only what exists is kept: what does not could fill it."""

    def __init__(self) -> None:
        self._entries: dict[K, tuple[V, float]] = {}
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        return entry[0] if entry and time.monotonic() - entry[1] < SECONDS else None

    def keep(self, key: K, value: V) -> None:
        with self._lock:
            if len(self._entries) >= SIZE:
                self._entries.clear()
            self._entries[key] = value, time.monotonic()

    def clear(self) -> None:
        self._entries.clear()
