"""What is remembered of hosts for a while."""

import time
from collections import OrderedDict


class ExpiringSet:
    """Names that something was noted of; each is forgotten after a time, the oldest first when there are many."""

    def __init__(self, *, seconds: float, most: int = 10_000) -> None:
        self._seconds = seconds
        self._most = most
        self._until: OrderedDict[str, float] = OrderedDict()

    def __contains__(self, name: str) -> bool:
        return self._until.get(name, 0.0) > time.monotonic()

    def add(self, name: str) -> None:
        self._until[name] = time.monotonic() + self._seconds
        self._until.move_to_end(name)
        if len(self._until) > self._most:
            self._until.popitem(last=False)
