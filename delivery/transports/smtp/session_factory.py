"""Open sessions, and remember of each host what the next one should know."""

import asyncio
from dataclasses import replace

from delivery.bounces.reasons import Reason
from delivery.transports.expiring_set import ExpiringSet
from delivery.transports.smtp.errors import SmtpError
from delivery.transports.smtp.server import RFC_5321, Server, Timeouts
from delivery.transports.smtp.session import Session
from delivery.transports.smtp.tls import Tls

IN_CLEAR_SECONDS = 3600.0
DOWN_SECONDS = 60.0


class SessionFactory:
    """Opens sessions with these timeouts."""

    def __init__(self, timeouts: Timeouts = RFC_5321) -> None:
        self._timeouts = timeouts
        self._in_clear = ExpiringSet(seconds=IN_CLEAR_SECONDS)
        self._down = ExpiringSet(seconds=DOWN_SECONDS)

    def is_down(self, name: str) -> bool:
        """Tell whether a host did not let us in a moment ago."""
        return name in self._down

    def deadline(self) -> float:
        """Return when an attempt that begins now has to end, in the loop's time."""
        return asyncio.get_running_loop().time() + self._timeouts.whole

    async def open(self, server: Server, *, deadline: float) -> Session:
        """Return a session; in clear where opportunistic TLS fails, as for a host that offers none. Raises Setback."""
        try:
            return await self._open(server, deadline)
        except SmtpError:
            self._down.add(server.name)
            raise

    async def _open(self, server: Server, deadline: float) -> Session:
        if server.tls is Tls.OPPORTUNISTIC and server.name in self._in_clear:
            server = replace(server, tls=Tls.NONE)
        try:
            return await Session.open(server, deadline=deadline, timeouts=self._timeouts)
        except SmtpError as setback:
            if setback.reason is not Reason.TLS or server.tls is not Tls.OPPORTUNISTIC:
                raise
        session = await Session.open(replace(server, tls=Tls.NONE), deadline=deadline, timeouts=self._timeouts)
        self._in_clear.add(server.name)
        return session
