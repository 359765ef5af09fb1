"""DNS cache of one domain check: each record is queried once, in parallel, and no lookup outlasts the check."""

import asyncio
import itertools
from typing import Any

from core.lib.network.resolver import DnsAnswer, DnsError, LookupStatus, Resolver

# A check takes at most 5 s, including its SQL: required answers first, optional ones in the remaining time.
ANSWER_SECONDS = 3.5
HINT_SECONDS = 4.2


class DnsCache:
    """The DNS answers of one check. Created inside a running event loop; its time limit starts at creation."""

    def __init__(self, resolver: Resolver) -> None:
        now = asyncio.get_running_loop().time()
        self._answer_deadline, self._hint_deadline = now + ANSWER_SECONDS, now + HINT_SECONDS
        self._resolver = resolver
        self._queries: dict[tuple[str, str], asyncio.Task[DnsAnswer]] = {}

    async def look_up(self, name: str, kind: str) -> DnsAnswer:
        """Return the answer for a name and record type. Raises DnsError, also at the deadline of the check."""
        return await self._answer(name, kind, deadline=self._answer_deadline)

    async def look_up_texts(self, name: str) -> tuple[str, ...]:
        """Return the TXT records of a name; none if the name does not exist. Raises DnsError.

        Sorted, because servers rotate the order of records and the displayed texts should not change.
        """
        return tuple(sorted((await self.look_up(name, "TXT")).records))

    async def look_up_optional(self, name: str, kind: str) -> tuple[Any, ...]:
        """Return the records of a name; none if the lookup fails."""
        try:
            return (await self._answer(name, kind, deadline=self._hint_deadline)).records
        except DnsError:
            return ()

    async def look_up_addresses(self, name: str) -> tuple[str, ...]:
        """Return the IPv4 and IPv6 addresses of a name; none if the lookups fail."""
        addresses = await asyncio.gather(*(self.look_up_optional(name, kind) for kind in ("A", "AAAA")))
        return tuple(sorted(itertools.chain(*addresses)))

    async def is_absent(self, name: str) -> bool:
        """Return whether a name does not exist (NXDOMAIN); False if the lookup fails."""
        try:
            return (await self._answer(name, "TXT", deadline=self._hint_deadline)).status is LookupStatus.NO_NAME
        except DnsError:
            return False

    async def close(self) -> None:
        """Cancel the lookups that are still running."""
        for task in self._queries.values():
            task.cancel()
        await asyncio.gather(*self._queries.values(), return_exceptions=True)

    async def _answer(self, name: str, kind: str, *, deadline: float) -> DnsAnswer:
        key = name.rstrip(".").lower(), kind
        if key not in self._queries:
            self._queries[key] = asyncio.create_task(self._resolver.look_up(*key))
        try:
            async with asyncio.timeout_at(deadline):
                # A caller that times out must not cancel the query, which other callers may share.
                return await asyncio.shield(self._queries[key])
        except TimeoutError as error:
            raise DnsError(f"{name} {kind}: the check timed out") from error
