"""The look-ups of one check: each name is asked once, all of them in parallel, and none outlasts the check."""

import asyncio
from typing import Any

from lib.resolver import Answer, DnsTrouble, Resolver

# A check is answered within 5 s, its SQL included: answers that count come first, hints may take what is left.
ANSWER_SECONDS = 3.5
HINT_SECONDS = 4.2


class Lookups:
    """Made inside of a running loop; its time begins with it."""

    def __init__(self, resolver: Resolver) -> None:
        now = asyncio.get_running_loop().time()
        self._answers_until, self._hints_until = now + ANSWER_SECONDS, now + HINT_SECONDS
        self._resolver = resolver
        self._asked: dict[tuple[str, str], asyncio.Task[Answer]] = {}

    async def look_up(self, name: str, kind: str) -> Answer:
        """Raises DnsTrouble, also when the time of the check is over."""
        return await self._answer(name, kind, until=self._answers_until)

    async def texts(self, name: str) -> tuple[str, ...]:
        """Return the TXT records of a name, none where there is no such name. Raises DnsTrouble.

        Servers turn the order at every answer; what is shown and proposed should stay the same.
        """
        return tuple(sorted((await self.look_up(name, "TXT")).records))

    async def hint(self, name: str, kind: str) -> tuple[Any, ...]:
        """Return the records of a name; no answer is none."""
        try:
            return (await self._answer(name, kind, until=self._hints_until)).records
        except DnsTrouble:
            return ()

    async def close(self) -> None:
        """End what nobody waits for any more."""
        for task in self._asked.values():
            task.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)

    async def _answer(self, name: str, kind: str, *, until: float) -> Answer:
        key = name.rstrip(".").lower(), kind
        if key not in self._asked:
            self._asked[key] = asyncio.create_task(self._resolver.look_up(*key))
        try:
            async with asyncio.timeout_at(until):
                # Others may wait for the same answer: one that gives up must not take it from them.
                return await asyncio.shield(self._asked[key])
        except TimeoutError as error:
            raise DnsTrouble(f"{name} {kind}: the time of the check is over") from error
