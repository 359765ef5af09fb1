"""SMTP as the receiver speaks it: aiosmtpd's, with an end to everything a stranger may go on with.

aiosmtpd takes a bare LF for the end of a command, keeps an endless line in memory, and waits for a slow
sender as long as it sends commands. Here bytes are looked at before they are read as anything: a CR or an LF
that stands alone ends the session, so that no two readers can disagree on where a message ends.
"""

import asyncio
import logging
import re
import ssl
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, AnyStr

from aiosmtpd.smtp import SMTP

log = logging.getLogger("postrider.inbound")

ALONE = re.compile(rb"\r(?!\n)|(?<!\r)\n")
NOT_HERE = "502 5.5.1 Not here"
LINE_ENDS = "521 5.5.2 Lines end with CR LF"
TOO_MUCH = "552 5.3.4 Too much"


@dataclass(frozen=True)
class Limits:
    """What one session, and all of them together, may use. RFC 5321, 4.5.3.2.7 asks for five minutes of patience."""

    message_bytes: int = 1024 * 1024
    lines: int = 50_000
    line_bytes: int = 16 * 1024
    idle_seconds: float = 300.0
    session_seconds: float = 1_200.0
    sessions: int = 50
    sessions_of_a_peer: int = 10
    messages: int = 200
    refusals: int = 20

    @property
    def commands(self) -> dict[str, int]:
        """How often a session may say what."""
        often = dict.fromkeys(("MAIL", "RCPT", "DATA", "RSET"), 2 * self.messages)
        return {**often, "*": 20}


@dataclass
class Doorkeeper:
    """Counts who is inside."""

    limits: Limits
    inside: Counter[str] = field(default_factory=Counter)

    def enter(self, peer: str) -> bool:
        """Let a session in, unless there are too many of them."""
        is_full = self.inside.total() >= self.limits.sessions or self.inside[peer] >= self.limits.sessions_of_a_peer
        if not is_full:
            self.inside[peer] += 1
        return not is_full

    def leave(self, peer: str) -> None:
        self.inside[peer] -= 1
        self.inside += Counter()


class ReportSMTP(SMTP):
    """One session."""

    def __init__(
        self, handler: Any, *, doorkeeper: Doorkeeper, hostname: str, tls_context: ssl.SSLContext | None
    ) -> None:
        limits = doorkeeper.limits
        self.line_length_limit = limits.line_bytes
        super().__init__(
            handler,
            data_size_limit=limits.message_bytes,
            enable_SMTPUTF8=True,
            hostname=hostname,
            ident="Postrider reports",
            tls_context=tls_context,
            timeout=limits.idle_seconds,
            command_call_limit=limits.commands,
            auth_exclude_mechanism=("LOGIN", "PLAIN"),
        )
        self.refusals = 0
        self._limits = limits
        self._doorkeeper = doorkeeper
        self._peer: str | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._ends_in_cr = False
        self._refill()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Called again by STARTTLS: the same session, so the same place inside.
        if self._deadline is None and not self._enter(transport):
            return
        self._ends_in_cr = False
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self._peer is not None:
            self._doorkeeper.leave(self._peer)
            self._peer = None
        if self._deadline is None:
            return
        self._deadline.cancel()
        super().connection_lost(error)

    def eof_received(self) -> bool | None:
        return super().eof_received() if self._deadline else None

    def data_received(self, data: bytes) -> None:
        if self._deadline is None or self.transport is None or self.transport.is_closing():
            return
        self._bytes_left -= len(data)
        self._lines_left -= data.count(b"\n")
        if self._stands_alone(data):
            self._end(LINE_ENDS)
        elif self._bytes_left < 0 or self._lines_left < 0:
            self._end(TOO_MUCH)
        else:
            super().data_received(data)

    async def push(self, status: AnyStr) -> None:
        await super().push(status)
        if self.refusals > self._limits.refusals or str(status).startswith("421"):
            self._end("")

    async def smtp_DATA(self, arg: str | None) -> None:  # noqa: N802
        self._refill()
        await super().smtp_DATA(arg)
        self._refill()

    async def smtp_AUTH(self, arg: str | None) -> None:  # noqa: N802
        await self.push(NOT_HERE)

    async def smtp_VRFY(self, arg: str | None) -> None:  # noqa: N802
        await self.push("252 2.1.5 Send it and see")

    async def smtp_EXPN(self, arg: str | None) -> None:  # noqa: N802
        await self.push(NOT_HERE)

    async def smtp_HELP(self, arg: str | None) -> None:  # noqa: N802
        await self.push("214 2.0.0 RFC 5321")

    async def handle_exception(self, error: Exception) -> str:
        """Answer without a word about what broke."""
        log.warning("a session went wrong", extra={"error": type(error).__name__})
        return "451 4.3.0 Something went wrong here"

    def _enter(self, transport: asyncio.BaseTransport) -> bool:
        address = transport.get_extra_info("peername")
        peer = str(address[0]) if address else ""
        if not self._doorkeeper.enter(peer):
            assert isinstance(transport, asyncio.WriteTransport)
            transport.write(b"421 4.7.0 Too many connections\r\n")
            transport.close()
            return False
        self._peer = peer
        self._deadline = self.loop.call_later(self._limits.session_seconds, self._end, "421 4.4.2 Time is up")
        return True

    def _stands_alone(self, data: bytes) -> bool:
        """Say whether a CR or an LF stands alone; a CR at the end of a piece waits for the next one."""
        whole = b"\r" + data if self._ends_in_cr else data
        self._ends_in_cr = whole.endswith(b"\r")
        return ALONE.search(whole[:-1] if self._ends_in_cr else whole) is not None

    def _end(self, status: str) -> None:
        transport = self.transport
        if isinstance(transport, asyncio.WriteTransport) and not transport.is_closing():
            if status:
                transport.write(status.encode() + b"\r\n")
            transport.close()

    def _refill(self) -> None:
        """Give the session the bytes of one more message, and of the commands around it."""
        self._bytes_left = 2 * self._limits.message_bytes
        self._lines_left = self._limits.lines
