"""TLS handshakes of connections with TLS from their start (RFC 8314): each counts as a session of its client."""

import asyncio
import math
import ssl
import time
from asyncio import sslproto

from core.lib.mail.smtp_limiter import ConnectionLimiter
from core.lib.mail.smtp_limits import network_of
from interfaces.submission.session import SubmissionSMTP

HANDSHAKE_SECONDS = 10


class Handshake(asyncio.Protocol):
    """A connection until its TLS handshake is complete, and its session begins."""

    can_end_for_others = True
    bytes_per_second = math.inf
    memory_owner = ""
    taken_bytes = 0

    def __init__(self, session: SubmissionSMTP, *, limiter: ConnectionLimiter, context: ssl.SSLContext) -> None:
        self._session = session
        self._limiter = limiter
        self._context = context
        self._started_at = time.monotonic()

    @property
    def idle_seconds(self) -> float:
        return time.monotonic() - self._started_at

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self._limiter.open(self, network_of(str(transport.get_extra_info("peername")[0]))):
            # No reply can be read before the handshake.
            transport.abort()
            return
        self._session.handshake = self
        loop = asyncio.get_running_loop()
        finished: asyncio.Future[None] = loop.create_future()
        finished.add_done_callback(self._finish)
        tls = sslproto.SSLProtocol(
            loop,
            self._session,
            self._context,
            finished,
            server_side=True,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
        )
        transport.set_protocol(tls)
        tls.connection_made(transport)

    def end(self, _status: str) -> None:
        self._transport.abort()

    def _finish(self, finished: "asyncio.Future[None]") -> None:
        self._limiter.close(self)
        if not finished.cancelled():
            # Clients may end a handshake for any reason.
            finished.exception()
