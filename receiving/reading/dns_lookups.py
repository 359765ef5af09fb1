"""DNS lookups of one message's verification: synchronous for the libraries, all of them within ten seconds.

Every query goes through core.lib.network.resolver, in the network loop of the process.
"""

import asyncio
import concurrent.futures
import time
from collections.abc import Sequence
from typing import Any

from core.lib.network.resolver import DnsError, LookupStatus, Resolver

TOTAL_SECONDS = 10.0
# One silent name server must not use up the time of all lookups.
QUERY_SECONDS = 4.0
MAX_LOOKUPS = 100


class DnsUnavailable(Exception):
    """Raised for a lookup without an answer, and for every later one when the time is used up: temperror."""


class MessageLookups:
    """The lookups of one message; each record is queried once. Used in one thread, beside the loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, servers: Sequence[tuple[str, int]], *, seconds: float = TOTAL_SECONDS
    ) -> None:
        self._loop = loop
        self._resolver = Resolver(servers, lifetime_seconds=QUERY_SECONDS)
        self._end = time.monotonic() + seconds
        self._answers: dict[tuple[str, str], tuple[Any, ...] | DnsUnavailable] = {}

    def look_up(self, name: str, kind: str) -> tuple[Any, ...]:
        """Return the records of a name as in DnsAnswer, none if it does not exist. Raises DnsUnavailable."""
        key = name.rstrip(".").lower(), kind
        if key not in self._answers:
            self._answers[key] = self._query(*key)
        answer = self._answers[key]
        if isinstance(answer, DnsUnavailable):
            raise answer
        return answer

    @property
    def seconds_left(self) -> float:
        return max(self._end - time.monotonic(), 0.0)

    def _query(self, name: str, kind: str) -> tuple[Any, ...] | DnsUnavailable:
        if self.seconds_left <= 0 or len(self._answers) >= MAX_LOOKUPS:
            return DnsUnavailable("no time is left for DNS")
        lookup = asyncio.run_coroutine_threadsafe(self._resolver.look_up(name, kind), self._loop)
        try:
            answer = lookup.result(min(self.seconds_left, QUERY_SECONDS + 1))
        except (DnsError, concurrent.futures.TimeoutError, TimeoutError) as error:
            lookup.cancel()
            return DnsUnavailable(f"{name} {kind}: {type(error).__name__}")
        return answer.records if answer.status is LookupStatus.FOUND else ()
