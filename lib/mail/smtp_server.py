"""SMTP server sessions: aiosmtpd with limits on every resource that a client can use.

aiosmtpd accepts a bare LF as the end of a command, buffers lines without a limit, and waits for a slow client
as long as it sends commands. This class checks bytes before they are parsed: a bare CR or LF ends the session,
so that no two servers can disagree on where a message ends (SMTP smuggling).
"""

import asyncio
import logging
import re
import ssl
import time
from dataclasses import dataclass, field
from typing import Any, AnyStr

from aiosmtpd.smtp import SMTP

log = logging.getLogger("postrider.smtp_server")

ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
# The usual form of an address in MAIL and RCPT, before its parameters; aiosmtpd's own parser takes 100 times as long.
PLAIN_ADDRESS = re.compile(rf"<({ATOM}(?:\.{ATOM})*@{ATOM}(?:\.{ATOM})*)>(| .*)")
BARE_LINE_END = re.compile(rb"\r(?!\n)|(?<!\r)\n")
NOT_SUPPORTED = "502 5.5.1 Command not supported"
BAD_LINE_END = "521 5.5.2 Bare CR or LF is not allowed; lines must end with CRLF"
TOO_MANY_CONNECTIONS = "421 4.7.0 Too many connections"
TOO_LARGE = "552 5.3.4 Message too large"


@dataclass(frozen=True)
class SessionLimits:
    """Limits of one session and of all sessions together. RFC 5321, 4.5.3.2.7: idle timeout of at least 5 minutes.

    rcpt_seconds: from the connection to the first accepted recipient. crowded_idle_seconds: after this time without a
    command, a session can be ended for a new one when there are too many.
    """

    message_bytes: int = 1024 * 1024
    lines: int = 50_000
    line_bytes: int = 16 * 1024
    idle_seconds: float = 300.0
    session_seconds: float = 1_200.0
    rcpt_seconds: float = 30.0
    crowded_idle_seconds: float = 60.0
    sessions: int = 50
    sessions_per_peer: int = 10
    messages: int = 200
    refusals: int = 20
    other_commands: int = 20

    @property
    def commands(self) -> dict[str, int]:
        """Return how often a session may use each command; "*" stands for all others."""
        per_message = dict.fromkeys(("MAIL", "RCPT", "DATA", "RSET"), 2 * self.messages)
        return {**per_message, "*": self.other_commands}


@dataclass
class ConnectionLimiter:
    """The open sessions with their peer addresses."""

    limits: SessionLimits
    sessions: "dict[LimitedSMTP, str]" = field(default_factory=dict)

    def open(self, session: "LimitedSMTP", peer: str) -> bool:
        """Add a new session; return False if a limit is reached.

        If there are too many sessions, the one that has been idle for longest ends, so that silent clients do not shut
        out others. A session with a recipient is kept, unless it has been idle for a while.
        """
        if list(self.sessions.values()).count(peer) >= self.limits.sessions_per_peer:
            return False
        if len(self.sessions) >= self.limits.sessions and not self._end_idle_session():
            return False
        self.sessions[session] = peer
        return True

    def close(self, session: "LimitedSMTP") -> None:
        self.sessions.pop(session, None)

    def _end_idle_session(self) -> bool:
        idle = [session for session in self.sessions if session.can_end_for_others]
        if not idle:
            return False
        longest = max(idle, key=lambda session: session.idle_seconds)
        self.close(longest)
        longest.end(TOO_MANY_CONNECTIONS)
        return True


class LimitedSMTP(SMTP):
    """One SMTP session.

    options: further arguments of aiosmtpd's class.
    """

    def __init__(
        self,
        handler: Any,
        *,
        limiter: ConnectionLimiter,
        hostname: str,
        ident: str,
        tls_context: ssl.SSLContext | None,
        **options: Any,
    ) -> None:
        limits = limiter.limits
        self.line_length_limit = limits.line_bytes
        super().__init__(
            handler,
            data_size_limit=limits.message_bytes,
            enable_SMTPUTF8=True,
            hostname=hostname,
            ident=ident,
            tls_context=tls_context,
            timeout=limits.idle_seconds,
            command_call_limit=limits.commands,
            **options,
        )
        self.refusals = 0
        self._limits = limits
        self._limiter = limiter
        self._deadline: asyncio.TimerHandle | None = None
        self._rcpt_deadline: asyncio.TimerHandle | None = None
        self._is_established = False
        self._active_at = time.monotonic()
        self._ends_in_cr = False
        self._reset_budget()

    @property
    def idle_seconds(self) -> float:
        return time.monotonic() - self._active_at

    @property
    def can_end_for_others(self) -> bool:
        return not self._is_established or self.idle_seconds > self._limits.crowded_idle_seconds

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # STARTTLS calls this again for the same session, which is already counted.
        if self._deadline is None and not self._open(transport):
            return
        self._ends_in_cr = False
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._limiter.close(self)
        if self._deadline is None or self._rcpt_deadline is None:
            return
        self._deadline.cancel()
        self._rcpt_deadline.cancel()
        super().connection_lost(error)

    def eof_received(self) -> bool | None:
        return super().eof_received() if self._deadline else None

    def data_received(self, data: bytes) -> None:
        if self._deadline is None or self.transport is None or self.transport.is_closing():
            return
        self._active_at = time.monotonic()
        self._bytes_left -= len(data)
        self._lines_left -= data.count(b"\n")
        if self._has_bare_line_end(data):
            self.end(BAD_LINE_END)
        elif self._bytes_left < 0 or self._lines_left < 0:
            self.end(TOO_LARGE)
        else:
            super().data_received(data)

    async def push(self, status: AnyStr) -> None:
        await super().push(status)
        if self.refusals > self._limits.refusals or str(status).startswith("421"):
            self.end("")

    async def smtp_RCPT(self, arg: str | None) -> None:  # noqa: N802
        await super().smtp_RCPT(arg)
        if self.envelope and self.envelope.rcpt_tos:
            self.establish()

    async def smtp_DATA(self, arg: str | None) -> None:  # noqa: N802
        self._reset_budget()
        await super().smtp_DATA(arg)
        self._reset_budget()

    async def smtp_VRFY(self, arg: str | None) -> None:  # noqa: N802
        await self.push("252 2.1.5 Cannot VRFY user")

    async def smtp_EXPN(self, arg: str | None) -> None:  # noqa: N802
        await self.push(NOT_SUPPORTED)

    async def smtp_HELP(self, arg: str | None) -> None:  # noqa: N802
        await self.push("214 2.0.0 RFC 5321")

    async def handle_exception(self, error: Exception) -> str:
        """Reply without details of the error."""
        log.warning("an SMTP session failed", extra={"data": {"error": type(error).__name__}})
        return "451 4.3.0 Internal error"

    def _open(self, transport: asyncio.BaseTransport) -> bool:
        address = transport.get_extra_info("peername")
        peer = str(address[0]) if address else ""
        if not self._limiter.open(self, peer):
            assert isinstance(transport, asyncio.WriteTransport)
            transport.write(TOO_MANY_CONNECTIONS.encode() + b"\r\n")
            transport.close()
            return False
        self._rcpt_deadline = self.loop.call_later(self._limits.rcpt_seconds, self._end_without_recipient)
        self._deadline = self.loop.call_later(
            self._limits.session_seconds, self.end, "421 4.4.2 Session time limit reached"
        )
        return True

    def _getaddr(self, arg: str) -> tuple[str | None, str | None]:
        if plain := PLAIN_ADDRESS.fullmatch(arg):
            return plain[1], plain[2]
        found: tuple[str | None, str | None] = super()._getaddr(arg)
        return found

    def _has_bare_line_end(self, data: bytes) -> bool:
        """Check for a bare CR or LF; a CR at the end of a chunk is checked with the next chunk."""
        chunk = b"\r" + data if self._ends_in_cr else data
        self._ends_in_cr = chunk.endswith(b"\r")
        return BARE_LINE_END.search(chunk[:-1] if self._ends_in_cr else chunk) is not None

    def establish(self) -> None:
        """Keep the session beyond rcpt_seconds, and prefer it to sessions without a recipient."""
        self._is_established = True

    def _end_without_recipient(self) -> None:
        if not self._is_established:
            self.end("421 4.4.2 No recipient within the time limit")

    def end(self, status: str) -> None:
        """Close the connection, after a last reply if there is one."""
        transport = self.transport
        if isinstance(transport, asyncio.WriteTransport) and not transport.is_closing():
            if status:
                transport.write(status.encode() + b"\r\n")
            transport.close()

    def _reset_budget(self) -> None:
        """Allow the bytes and lines of one more message, including the commands around it."""
        self._bytes_left = 2 * self._limits.message_bytes
        self._lines_left = self._limits.lines
