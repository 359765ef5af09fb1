"""SMTP connection: the bytes of one session, with a size limit for each reply and a timeout for each wait.

Written as an asyncio.Protocol rather than on streams: a kept connection with PIPELINING costs a third of
the time of a general client (docs/decisions/0020).
"""

import asyncio
import re
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

# F18: a host may send lines forever. A longer reply is invalid.
MAX_LINES = 64
MAX_REPLY_BYTES = 8192
# Bytes buffered in this process, in addition to the kernel's buffer.
WRITE_BUFFER_BYTES = 128 * 1024

# RFC 5321, section 4.2. SMTP has no 1xx replies, and none above 5xx.
LINE = re.compile(rb"([2-5]\d\d)(?:([ -])(.*))?", re.DOTALL)


class ConnectionBroken(Exception):
    """Raised when the connection is unusable: it broke, timed out, or carried an invalid reply."""


class InvalidReply(ConnectionBroken):
    """Raised when the host sent a line that is not a reply, or a reply that is too long."""


@dataclass(frozen=True)
class RawReply:
    """A reply as received: its lines without their codes."""

    code: int
    lines: tuple[bytes, ...]


class SmtpConnection(asyncio.Protocol):
    """Sends commands and collects replies. After the first error, every call raises ConnectionBroken."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self._lines: list[bytes] = []
        self._code = b""
        self._size = 0
        self._replies: deque[RawReply] = deque()
        self._error: ConnectionBroken | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._is_paused = False
        # The end of the current wait, and the timer that checks it.
        self._wait_until = float("inf")
        self._timer: asyncio.TimerHandle | None = None
        # In the loop's time. No wait continues past it.
        self.deadline = 0.0

    # asyncio.Protocol callbacks.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)

    def data_received(self, data: bytes) -> None:
        if self._error:
            return
        *lines, self._buffer = (self._buffer + data).split(b"\r\n")
        try:
            for line in lines:
                self._parse_line(line)
            if len(self._buffer) + self._size > MAX_REPLY_BYTES:
                raise InvalidReply("The host's reply is too long.")
        except InvalidReply as error:
            self.fail(error)
        self._wake()

    def eof_received(self) -> None:
        self.fail(ConnectionBroken("The host closed the connection."))

    def connection_lost(self, exc: Exception | None) -> None:
        self.fail(ConnectionBroken(f"The connection was lost: {exc}." if exc else "The host closed the connection."))
        if self._timer:
            self._timer.cancel()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._wake()

    # Methods for Session.

    @property
    def is_idle(self) -> bool:
        """Return whether the connection is open and has no unread or unexpected data."""
        return not (self._error or self._replies or self._lines or self._buffer)

    @property
    def has_reply(self) -> bool:
        return bool(self._replies)

    def write(self, data: bytes) -> None:
        """Send bytes. Raises ConnectionBroken."""
        if self._error:
            raise self._error
        assert self._transport
        self._transport.write(data)

    async def drain(self, *, seconds: float) -> None:
        """Wait until more may be written, or until the host sends a reply. Raises ConnectionBroken."""
        await self._wait(lambda: not self._is_paused or self.has_reply, seconds)

    async def read_reply(self, *, seconds: float) -> RawReply:
        """Return the next reply. The timeout applies to the whole reply. Raises ConnectionBroken."""
        # A reply read before the connection broke still counts: hosts send a 550 and disconnect.
        if not self._replies:
            await self._wait(lambda: self.has_reply, seconds)
        return self._replies.popleft()

    async def start_tls(self, context: ssl.SSLContext, *, name: str, seconds: float) -> None:
        """Start TLS on the connection; name is for SNI and the certificate.

        Raises the errors of the handshake, and InvalidReply for text injected before it.
        """
        # RFC 3207, section 4.2: plaintext received before the handshake may come from an attacker.
        if not self.is_idle:
            self.fail(InvalidReply("The host sent text before the TLS handshake."))
        if self._error:
            raise self._error
        assert self._transport
        limit = min(seconds, max(self.deadline - self._loop.time(), 0.001))
        secured = await self._loop.start_tls(
            self._transport, self, context, server_hostname=name, ssl_handshake_timeout=limit
        )
        self.connection_made(cast("asyncio.Transport", secured))

    @property
    def ssl_object(self) -> ssl.SSLObject | None:
        """The TLS of the connection; None in plaintext."""
        return self._transport.get_extra_info("ssl_object") if self._transport else None

    def fail(self, error: ConnectionBroken) -> None:
        """Abort the connection. Only the first error is kept."""
        if self._error:
            return
        self._error = error
        if self._transport:
            self._transport.abort()
        self._wake()

    def close(self, last_command: bytes = b"") -> None:
        """Close: after a last command whose reply is not awaited, or at once without one."""
        if self._error or not self._transport:
            return
        if not last_command:
            self.fail(ConnectionBroken("The connection was closed."))
            return
        self._error = ConnectionBroken("The connection was closed.")
        self._transport.write(last_command)
        self._transport.close()

    # Internals.

    def _parse_line(self, line: bytes) -> None:
        match = LINE.fullmatch(line)
        # A bare line feed would make the two sides disagree on where lines end.
        if not match or b"\n" in line:
            raise InvalidReply("The host's reply is not SMTP.")
        code, separator, text = match.groups()
        if self._code not in (b"", code):
            raise InvalidReply("The host's reply has two different codes.")
        self._code = code
        self._lines.append(text or b"")
        self._size += len(line)
        if len(self._lines) > MAX_LINES or self._size > MAX_REPLY_BYTES:
            raise InvalidReply("The host's reply is too long.")
        if separator != b"-":
            self._replies.append(RawReply(int(code), tuple(self._lines)))
            self._code, self._size = b"", 0
            self._lines.clear()
            if len(self._replies) > MAX_LINES:
                raise InvalidReply("The host sent unexpected replies.")

    async def _wait(self, is_done: Callable[[], bool], seconds: float) -> None:
        if is_done():
            return
        if self._error:
            raise self._error
        self._wait_until = min(self._loop.time() + seconds, self.deadline)
        self._start_timer()
        try:
            while not is_done():
                if self._error:
                    raise self._error
                self._waiter = self._loop.create_future()
                await self._waiter
        finally:
            self._wait_until = float("inf")
            self._waiter = None

    def _start_timer(self) -> None:
        """Make the timer fire at the end of the wait or earlier; most waits end long before, so it is kept."""
        if self._timer and self._timer.when() <= self._wait_until:
            return
        if self._timer:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._wait_until, self._check_wait)

    def _check_wait(self) -> None:
        self._timer = None
        if self._loop.time() >= self._wait_until:
            self.fail(ConnectionBroken("The host did not answer in time."))
        elif self._waiter:
            self._start_timer()

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)
