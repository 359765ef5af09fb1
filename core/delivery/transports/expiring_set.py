"""Expiring set of host names, each with a note."""

import time
from collections import OrderedDict


class ExpiringSet:
    """Names that each expire after ttl_seconds; beyond max_size the oldest is dropped."""

    def __init__(self, *, ttl_seconds: float, max_size: int = 10_000) -> None:
        self._ttl_seconds = ttl_seconds
        self._max_size = max_size
        self._names: OrderedDict[str, tuple[float, str]] = OrderedDict()

    def __contains__(self, name: str) -> bool:
        return self._names.get(name, (0.0, ""))[0] > time.monotonic()

    def note(self, name: str) -> str:
        """Return the note of a name of the set."""
        return self._names[name][1]

    def add(self, name: str, *, note: str = "") -> None:
        """Add a name, or restart its time."""
        self._names[name] = time.monotonic() + self._ttl_seconds, note
        self._names.move_to_end(name)
        if len(self._names) > self._max_size:
            self._names.popitem(last=False)
