"""DNS lookups of one message's verification: synchronous for the libraries, all of them within ten seconds.

Every query goes through core.lib.network.resolver, in the network loop of the process. The messages of a process share
the records that were found, for as long as the DNS allows.
"""

import asyncio
import concurrent.futures
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from core.lib.network.resolver import DnsAnswer, DnsError, LookupStatus, Resolver

TOTAL_SECONDS = 10.0
# One silent name server must not use up the time of all lookups.
QUERY_SECONDS = 4.0
MAX_LOOKUPS = 100
# Records that are kept: for at most so long, so many, and none of a larger answer.
MAX_KEPT_SECONDS = 300.0
MAX_KEPT = 5_000
MAX_KEPT_LENGTH = 4096

# A name in lower case without the root dot, and a type.
Question = tuple[str, str]


class DnsUnavailable(Exception):
    """Raised for a lookup without an answer, and for every later one when the time is used up: temperror."""


class SharedLookups:
    """The lookups of all messages of a process. Answers without records are not kept: they have no TTL here."""

    def __init__(self, loop: asyncio.AbstractEventLoop, servers: Sequence[tuple[str, int]]) -> None:
        self.loop = loop
        self._resolver = Resolver(servers, lifetime_seconds=QUERY_SECONDS)
        # Records, and the end of their TTL. Written in the loop, read in any thread.
        self._kept: dict[Question, tuple[tuple[Any, ...], float]] = {}
        self._running: dict[Question, asyncio.Task[DnsAnswer]] = {}
        # The messages that wait for each.
        self._waiting: Counter[Question] = Counter()

    def find(self, question: Question) -> tuple[Any, ...] | None:
        """Return records that are kept; None without them."""
        found = self._kept.get(question)
        return found[0] if found and time.monotonic() < found[1] else None

    def query(self, question: Question, *, seconds: float) -> tuple[Any, ...]:
        """Return the records of a name, none if it does not exist. In a thread. Raises DnsUnavailable."""
        lookup = asyncio.run_coroutine_threadsafe(self._look_up(question), self.loop)
        try:
            answer = lookup.result(seconds)
        except (DnsError, concurrent.futures.TimeoutError, TimeoutError) as error:
            lookup.cancel()
            raise DnsUnavailable(f"{question}: {type(error).__name__}") from error
        return answer.records if answer.status is LookupStatus.FOUND else ()

    async def _look_up(self, question: Question) -> DnsAnswer:
        """Query the name servers, once for all who ask at the same time."""
        task = self._running.get(question)
        if task is None:
            task = self._running[question] = asyncio.create_task(self._resolver.look_up(*question))
            task.add_done_callback(lambda done: self._finish(question, done))
        self._waiting[question] += 1
        try:
            # A message whose time is used up does not end the lookup of others.
            return await asyncio.shield(task)
        finally:
            self._waiting[question] -= 1
            if not self._waiting[question]:
                del self._waiting[question]
                self._forget(question, task)
                task.cancel()

    def _forget(self, question: Question, task: asyncio.Task[DnsAnswer]) -> None:
        """Let the next message that asks begin another query."""
        if self._running.get(question) is task:
            del self._running[question]

    def _finish(self, question: Question, task: asyncio.Task[DnsAnswer]) -> None:
        self._forget(question, task)
        if task.cancelled() or task.exception():
            return
        answer = task.result()
        is_small = sum(len(str(record)) for record in answer.records) <= MAX_KEPT_LENGTH
        if answer.records and is_small:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            self._kept[question] = answer.records, time.monotonic() + min(answer.ttl_seconds, MAX_KEPT_SECONDS)


class MessageLookups:
    """The lookups of one message; each record is queried once. Used in one thread, beside the loop."""

    def __init__(self, shared: SharedLookups, *, seconds: float = TOTAL_SECONDS) -> None:
        self._shared = shared
        self._end = time.monotonic() + seconds
        self._answers: dict[Question, tuple[Any, ...] | DnsUnavailable] = {}

    def look_up(self, name: str, kind: str) -> tuple[Any, ...]:
        """Return the records of a name as in DnsAnswer, none if it does not exist. Raises DnsUnavailable."""
        key = name.rstrip(".").lower(), kind
        if key not in self._answers:
            self._answers[key] = self._query(key)
        answer = self._answers[key]
        if isinstance(answer, DnsUnavailable):
            raise answer
        return answer

    @property
    def seconds_left(self) -> float:
        return max(self._end - time.monotonic(), 0.0)

    def _query(self, question: Question) -> tuple[Any, ...] | DnsUnavailable:
        if self.seconds_left <= 0 or len(self._answers) >= MAX_LOOKUPS:
            return DnsUnavailable("no time is left for DNS")
        records = self._shared.find(question)
        if records is not None:
            return records
        try:
            return self._shared.query(question, seconds=min(self.seconds_left, QUERY_SECONDS + 1))
        except DnsUnavailable as error:
            return error
