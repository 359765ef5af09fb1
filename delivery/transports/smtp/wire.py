"""The bytes of one SMTP connection: replies come in, each with its limits; nothing is waited for without an end.

Written as an asyncio.Protocol rather than on streams: a kept connection with PIPELINING costs a third of
what a general client costs (docs/decisions/0020).
"""

import asyncio
import re
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

# F18: a host may send lines without end. What exceeds this is no answer.
MAX_LINES = 64
MAX_REPLY_BYTES = 8192
# Held back by us at most, beside what the kernel takes.
WRITE_BUFFER_BYTES = 128 * 1024

# RFC 5321, section 4.2. 1xx does not exist in SMTP, nor does anything above 5xx.
LINE = re.compile(rb"([2-5]\d\d)(?:([ -])(.*))?", re.DOTALL)


class WireBroken(Exception):
    """The connection is of no more use: it broke, timed out, or carried what is no SMTP."""


class NotSmtp(WireBroken):
    """The host said something that is no reply, or more than a reply may be."""


@dataclass(frozen=True)
class RawReply:
    """A reply as it came: the lines without their codes."""

    code: int
    lines: tuple[bytes, ...]


class Wire(asyncio.Protocol):
    """Sends commands and collects replies. Whatever goes wrong ends it, and raises WireBroken from then on."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._unread = b""
        self._lines: list[bytes] = []
        self._code = b""
        self._size = 0
        self._replies: deque[RawReply] = deque()
        self._error: WireBroken | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._is_full = False
        # In the loop's time: nothing is waited for beyond it.
        self.deadline = 0.0

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)

    def data_received(self, data: bytes) -> None:
        if self._error:
            return
        *lines, self._unread = (self._unread + data).split(b"\r\n")
        try:
            for line in lines:
                self._take(line)
            if len(self._unread) + self._size > MAX_REPLY_BYTES:
                raise NotSmtp("The host's reply is too long.")
        except NotSmtp as error:
            self.fail(error)
        self._wake()

    def eof_received(self) -> None:
        self.fail(WireBroken("The host closed the connection."))

    def connection_lost(self, exc: Exception | None) -> None:
        self.fail(WireBroken(f"The connection broke: {exc}." if exc else "The host closed the connection."))

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._wake()

    # What a session calls.

    @property
    def is_quiet(self) -> bool:
        """Tell whether the connection stands and holds nothing that nobody asked for."""
        return not (self._error or self._replies or self._lines or self._unread)

    @property
    def has_reply(self) -> bool:
        return bool(self._replies)

    def write(self, data: bytes) -> None:
        """Hand bytes to the connection. Raises WireBroken."""
        if self._error:
            raise self._error
        assert self._transport
        self._transport.write(data)

    async def drained(self, *, seconds: float) -> None:
        """Wait until more may be written, or until the host says something. Raises WireBroken."""
        await self._wait(lambda: not self._is_full or self.has_reply, seconds)

    async def reply(self, *, seconds: float) -> RawReply:
        """Wait for the next reply: for the whole of it, not for each of its bytes. Raises WireBroken."""
        # What was read before the connection broke still counts: "550 go away" and a closed door.
        if not self._replies:
            await self._wait(lambda: self.has_reply, seconds)
        return self._replies.popleft()

    async def start_tls(self, context: ssl.SSLContext, *, name: str, seconds: float) -> None:
        """Put TLS around the connection; name is for SNI and for the certificate.

        Raises what the handshake raises, and NotSmtp for text slipped in before it.
        """
        # RFC 3207, section 4.2: what was sent in clear may come from anyone.
        if not self.is_quiet:
            self.fail(NotSmtp("The host sent text in front of the TLS handshake."))
        if self._error:
            raise self._error
        assert self._transport
        limit = min(seconds, max(self.deadline - self._loop.time(), 0.001))
        secured = await self._loop.start_tls(
            self._transport, self, context, server_hostname=name, ssl_handshake_timeout=limit
        )
        self.connection_made(cast("asyncio.Transport", secured))

    def fail(self, error: WireBroken) -> None:
        """End the connection; the first error is the one that counts."""
        if self._error:
            return
        self._error = error
        if self._transport:
            self._transport.abort()
        self._wake()

    def close(self, farewell: bytes = b"") -> None:
        """Close, with a farewell that nobody waits for the answer of, or in the middle of things."""
        if self._error or not self._transport:
            return
        if not farewell:
            self.fail(WireBroken("The connection was closed."))
            return
        self._error = WireBroken("The connection was closed.")
        self._transport.write(farewell)
        self._transport.close()

    # The rest.

    def _take(self, line: bytes) -> None:
        match = LINE.fullmatch(line)
        # A line feed of its own means that the host and we disagree on where lines end.
        if not match or b"\n" in line:
            raise NotSmtp("The host's reply is no SMTP.")
        code, separator, text = match.groups()
        if self._code not in (b"", code):
            raise NotSmtp("The host's reply has two codes.")
        self._code = code
        self._lines.append(text or b"")
        self._size += len(line)
        if len(self._lines) > MAX_LINES or self._size > MAX_REPLY_BYTES:
            raise NotSmtp("The host's reply is too long.")
        if separator != b"-":
            self._replies.append(RawReply(int(code), tuple(self._lines)))
            self._code, self._size = b"", 0
            self._lines.clear()
            if len(self._replies) > MAX_LINES:
                raise NotSmtp("The host sent replies that nobody asked for.")

    async def _wait(self, is_done: Callable[[], bool], seconds: float) -> None:
        if is_done():
            return
        if self._error:
            raise self._error
        at = min(self._loop.time() + seconds, self.deadline)
        timer = self._loop.call_at(at, self.fail, WireBroken("The host did not answer in time."))
        try:
            while not is_done():
                if self._error:
                    raise self._error
                self._waiter = self._loop.create_future()
                await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)
