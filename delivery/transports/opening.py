"""Open sessions, and remember of each host what the next one should know."""

from dataclasses import replace

from delivery.reasons import Reason
from delivery.transports.notes import Notes
from delivery.transports.session import RFC_5321, Server, Session, Timeouts
from delivery.transports.setbacks import Setback
from delivery.transports.tls import Tls

IN_CLEAR_SECONDS = 3600.0
DOWN_SECONDS = 60.0


class Opener:
    """Opens sessions with these timeouts."""

    def __init__(self, timeouts: Timeouts = RFC_5321) -> None:
        self._timeouts = timeouts
        self._in_clear = Notes(seconds=IN_CLEAR_SECONDS)
        self._down = Notes(seconds=DOWN_SECONDS)

    def is_down(self, name: str) -> bool:
        """Tell whether a host did not let us in a moment ago."""
        return name in self._down

    async def open(self, server: Server) -> Session:
        """Return a session; in clear where opportunistic TLS fails, as for a host that offers none. Raises Setback."""
        try:
            return await self._open(server)
        except Setback:
            self._down.add(server.name)
            raise

    async def _open(self, server: Server) -> Session:
        if server.tls is not Tls.OPPORTUNISTIC:
            return await Session.open(server, timeouts=self._timeouts)
        in_clear = replace(server, tls=Tls.NONE)
        if server.name in self._in_clear:
            return await Session.open(in_clear, timeouts=self._timeouts)
        try:
            return await Session.open(server, timeouts=self._timeouts)
        except Setback as setback:
            if setback.reason is not Reason.TLS:
                raise
        session = await Session.open(in_clear, timeouts=self._timeouts)
        self._in_clear.add(server.name)
        return session
