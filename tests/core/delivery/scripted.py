"""Scripted SMTP server on loopback: acts at each stage by a script, and records commands and messages.

    async with ScriptedServer({"rcpt": b"550 5.1.1 No such user\\r\\n"}) as server:
        ... server.port, server.commands, server.messages, server.connections

Stages: banner, ehlo, helo, starttls, auth, mail, rcpt, data, dot, rset, quit. The script maps a stage to the bytes of a
reply, to one of the acts below, or to a list of those for successive visits (the last one repeats). Stages that are
not in the script succeed.
"""

import asyncio
import contextlib
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Self

from core.delivery.message.compose import OutgoingMessage
from core.lib.email_addresses import Address

FLOOD_BYTES = 13_000_000

Act = Callable[["Visit"], Awaitable[None]]
Script = dict[str, bytes | Act | Sequence[bytes | Act]]

GOOD = {
    "banner": b"220 mx.example.com ESMTP\r\n",
    "helo": b"250 mx.example.com\r\n",
    "starttls": b"220 2.0.0 Ready\r\n",
    "auth": b"235 2.7.0 Welcome\r\n",
    "mail": b"250 2.1.0 Ok\r\n",
    "rcpt": b"250 2.1.5 Ok\r\n",
    "data": b"354 Go ahead\r\n",
    "dot": b"250 2.0.0 Queued as 1\r\n",
    "rset": b"250 2.0.0 Ok\r\n",
    "quit": b"221 2.0.0 Bye\r\n",
}
STAGES = {"EHLO": "ehlo", "HELO": "helo", "STARTTLS": "starttls", "AUTH": "auth", "MAIL": "mail", "RCPT": "rcpt"}
STAGES |= {"DATA": "data", "RSET": "rset", "QUIT": "quit"}


class Closed(Exception):
    """Raised by an act that ends the connection."""


class Visit:
    """One connection, as passed to acts."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.is_secure = writer.get_extra_info("ssl_object") is not None
        self.line = b""
        self.said = b""

    async def say(self, data: bytes) -> None:
        self.said = data
        self.writer.write(data)
        await self.writer.drain()


async def disconnect(visit: Visit) -> None:
    raise Closed


async def reset(visit: Visit) -> None:
    """Close with RST instead of FIN."""
    visit.writer.transport.abort()
    raise Closed


async def silence(visit: Visit) -> None:
    await visit.reader.read()
    raise Closed


async def drip(visit: Visit) -> None:
    """Send a byte every 20 ms and never finish the reply."""
    await visit.say(b"250-")
    while True:
        await visit.say(b"x")
        await asyncio.sleep(0.02)


async def flood(visit: Visit) -> None:
    """Send 13 MB of continuation lines."""
    for _ in range(FLOOD_BYTES // 65_000):
        await visit.say(b"220-and so on\r\n" * 4333)


async def long_line(visit: Visit) -> None:
    await visit.say(b"250 " + b"x" * 9000 + b"\r\n")


def after(seconds: float, reply: bytes) -> Act:
    async def act(visit: Visit) -> None:
        await asyncio.sleep(seconds)
        await visit.say(reply)

    return act


def then_disconnect(reply: bytes) -> Act:
    async def act(visit: Visit) -> None:
        await visit.say(reply)
        raise Closed

    return act


class ScriptedServer:
    """An SMTP server that listens within its async with block."""

    def __init__(
        self,
        script: Script | None = None,
        *,
        extensions: Sequence[str] = ("PIPELINING", "8BITMIME", "SIZE 10000000"),
        secure_extensions: Sequence[str] | None = None,
        tls: ssl.SSLContext | None = None,
        implicit: bool = False,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.script = script or {}
        self.extensions = extensions
        self.secure_extensions = extensions if secure_extensions is None else secure_extensions
        self.tls = tls
        self.implicit = implicit
        self.host = host
        self.port = port
        self.commands: list[bytes] = []
        self.envelopes: list[tuple[bytes, bytes]] = []
        # The bytes between DATA and the final dot, dot-stuffed, without the line of the dot.
        self.messages: list[bytes] = []
        self.connections = 0
        self.open = 0
        self.most_open = 0
        self._visits: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        context = self.tls if self.implicit else None
        self._server = await asyncio.start_server(self._serve, self.host, self.port, ssl=context, limit=2**26)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        # A pending connection is accepted in the next turn of the loop; closing now would leave it open.
        await asyncio.sleep(0.005)
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            # Python 3.11.2 cannot abort a closed transport.
            with contextlib.suppress(AttributeError):
                writer.transport.abort()
        # An aborted transport is closed one turn of the loop later.
        await asyncio.sleep(0.001)

    def said(self, verb: str) -> list[str]:
        """Return the commands that begin with a verb."""
        return [line.decode().rstrip() for line in self.commands if line.upper().startswith(verb.encode())]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        self._writers.append(writer)
        self.connections += 1
        self.open += 1
        self.most_open = max(self.open, self.most_open)
        try:
            with contextlib.suppress(Closed, OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._talk(Visit(reader, writer))
        finally:
            self.open -= 1
            self._tasks.discard(task)
            writer.close()

    async def _talk(self, visit: Visit) -> None:
        await self._do("banner", visit)
        while line := await visit.reader.readline():
            self.commands.append(line)
            visit.line = line
            stage = STAGES.get(line.split()[0].decode("latin-1").upper() if line.split() else "", "")
            if not stage:
                await visit.say(b"500 5.5.2 What?\r\n")
                continue
            await self._command(stage, visit)

    async def _command(self, stage: str, visit: Visit) -> None:
        if stage == "ehlo" and "ehlo" not in self.script:
            await visit.say(self._greeting(visit))
        elif stage == "auth" and "auth" not in self.script:
            await self._log_in(visit)
        elif stage == "data" and "data" not in self.script and not visit.said.startswith(b"250"):
            await visit.say(b"554 5.5.1 No valid recipients\r\n")
        else:
            await self._do(stage, visit)
        if stage == "starttls" and visit.said == GOOD["starttls"]:
            assert self.tls
            await visit.writer.start_tls(self.tls)
            visit.is_secure = True
        if stage == "rcpt":
            self.envelopes.append((self.commands[-2], visit.line))
        if stage == "data" and visit.said.startswith(b"354"):
            self.messages.append(await self._body(visit.reader))
            await self._do("dot", visit)
        if stage == "quit":
            raise Closed

    def _greeting(self, visit: Visit) -> bytes:
        offered = list(self.secure_extensions if visit.is_secure else self.extensions)
        if self.tls and not visit.is_secure:
            offered.append("STARTTLS")
        lines = ["mx.example.com", *offered]
        return "".join(f"250{'-' if line is not lines[-1] else ' '}{line}\r\n" for line in lines).encode()

    async def _log_in(self, visit: Visit) -> None:
        """Send the mechanism's challenges; the responses are added to `commands`."""
        rounds = {b"PLAIN": [b""], b"LOGIN": [b"VXNlcm5hbWU6", b"UGFzc3dvcmQ6"], b"CRAM-MD5": [b"PDFAbXg+"]}
        for challenge in rounds[visit.line.split()[1]]:
            await visit.say(b"334 " + challenge + b"\r\n")
            self.commands.append(await visit.reader.readline())
        await visit.say(GOOD["auth"])

    async def _body(self, reader: asyncio.StreamReader) -> bytes:
        """Read up to CRLF.CRLF and no other end."""
        lines = [b"\r\n"]
        while line := await reader.readline():
            if line == b".\r\n" and lines[-1].endswith(b"\r\n"):
                return b"".join(lines[1:])
            lines.append(line)
        raise Closed

    async def _do(self, stage: str, visit: Visit) -> None:
        act = self.script.get(stage, GOOD.get(stage, b""))
        if isinstance(act, (list, tuple)):
            act = act[min(self._visits[stage], len(act) - 1)]
        self._visits[stage] += 1
        if callable(act):
            await act(visit)
        else:
            assert isinstance(act, bytes)
            await visit.say(act)


class StubLease:
    """A lease whose validity is given, counting the checks."""

    def __init__(self, *, valid: bool = True) -> None:
        self.valid = valid
        self.asked = 0

    def is_valid(self) -> bool:
        self.asked += 1
        return self.valid


def outgoing_message(**fields: Any) -> OutgoingMessage:
    """Return a small outgoing message with the given fields replaced."""
    values: dict[str, Any] = {
        "return_path": "bounce+1@example.org",
        "recipient": "ada@example.com",
        "message_id": "<1@example.org>",
        "date": datetime(2026, 11, 21, 6, tzinfo=UTC),
        "sender": Address("Alice", "alice@example.org"),
        "to": (Address("", "ada@example.com"),),
        "subject": "Hello",
        "html": "<p>Hi</p>",
        "text": "Hi",
    }
    return OutgoingMessage(**{**values, **fields})
