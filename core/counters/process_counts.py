"""Counts of server processes for `/metrics` of web.

The processes may run on other machines than web, so the counts go through the database, like the outcomes of delivery
attempts (docs/decisions/0045).
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial

from django.db import Error

from core.counters import counters
from core.lib.worker.database_outage import database_outage

log = logging.getLogger("postrider.counters")

Labels = tuple[str, ...]
# Runs a step in a thread with a database connection.
RunStep = Callable[[Callable[[], None]], Awaitable[object]]
SAVE_SECONDS = 10.0


class ProcessCounts:
    """The counts of one kind in this process that are not saved yet, by labels without dots."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._unsaved: Counter[Labels] = Counter()

    def count(self, *labels: str, by: int = 1) -> None:
        self._unsaved[labels] += by

    async def save(self, run: RunStep) -> None:
        """Add the counts to the counters of the service; while the database does not respond, keep them."""
        counts = dict(+self._unsaved)
        if not counts:
            return
        try:
            await run(partial(self._add, counts))
        except Error as error:
            log.warning("counts cannot be saved; they are kept", exc_info=error)
        else:
            database_outage.record_success()
            self._unsaved.subtract(counts)

    def clear(self) -> None:
        self._unsaved.clear()

    def _add(self, counts: Mapping[Labels, int]) -> None:
        counters.add(
            (counters.CounterKey(counters.SERVICE, counters.ALL_TIME, ".".join((self._kind, *labels))), count)
            for labels, count in counts.items()
        )


def read_process_counts(kind: str, *, known: Iterable[Labels]) -> Iterator[tuple[Labels, int]]:
    """Yield the all-time counts of this installation by their labels.

    known: labels that have a count from the start: the first change of a counter without one is in no rate.
    """
    found = dict.fromkeys(known, 0)
    for key, count in counters.all_time_counts(counters.SERVICE).items():
        own_kind, *labels = key.split(".")
        if own_kind == kind:
            found[tuple(labels)] = count
    yield from sorted(found.items())
