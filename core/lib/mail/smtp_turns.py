"""Turns of the new sessions of one network: few are greeted at once, the others wait for their greeting.

A refusal would lose email of programs that open many sessions at once. The latest session that waits comes first, and
one that is silent ends for it: neither keeps others at a shared address out (docs/decisions/0170).
"""

import asyncio
from contextlib import suppress

from core.lib.mail.smtp_limits import TOO_MANY_CONNECTIONS, LimitedSession

# A client answers the greeting and each reply within a few round trips.
SILENT_SECONDS = 5.0


class NewSessions:
    """The greeted sessions of a network that are not established, at most `limit`, and those that wait."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._greeted: set[LimitedSession] = set()
        self._waiting: list[asyncio.Future[None]] = []

    async def enter(self, session: LimitedSession) -> None:
        """Wait for the turn of a session; it lasts until `leave`."""
        while len(self._greeted) >= self._limit:
            self._end_silent_session()
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                with suppress(TimeoutError):
                    await asyncio.wait_for(turn, SILENT_SECONDS)
            finally:
                with suppress(ValueError):
                    self._waiting.remove(turn)
        self._greeted.add(session)

    def leave(self, session: LimitedSession) -> None:
        """End the turn of a session, if it has one."""
        if session not in self._greeted:
            return
        self._greeted.remove(session)
        # A turn may be done, because its session has ended.
        while self._waiting:
            turn = self._waiting.pop()
            if not turn.done():
                turn.set_result(None)
                return

    def _end_silent_session(self) -> None:
        silent = [session for session in self._greeted if session.idle_seconds >= SILENT_SECONDS]
        if silent:
            max(silent, key=lambda session: session.idle_seconds).end(TOO_MANY_CONNECTIONS)
