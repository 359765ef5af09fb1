"""SMTP sinks that receive the messages of a benchmark."""

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TextIO
from uuid import uuid4

from tests.stack.servers import running_server
from tests.stack.stack import free_port, listens
from tests.standards.tools import program
from tools.benchmarks.processes import other_process

ROUND_TRIP_SECONDS = 0.1


@contextmanager
def smtp_sink(store: Path | None = None) -> Iterator[int]:
    """Yield the port of a running smtp-sink (Debian's postfix package).

    store: an empty directory that gets a file for each message.
    """
    port = free_port()
    command = [program("smtp-sink", package="postfix"), "-u", "nobody", "-m", "1000"]
    if store:
        store.chmod(0o777)
        command += ["-d", f"{store}/message."]
    command += [f"127.0.0.1:{port}", "1000"]
    with (
        tempfile.TemporaryDirectory() as logs,
        running_server(command, is_ready=lambda: listens(port), log=Path(logs) / "smtp-sink.log"),
    ):
        yield port


@contextmanager
def delayed_smtp_sink(store: Path) -> Iterator[int]:
    """Yield the port of a sink that delays every reply by a round trip of 100 ms.

    store: an empty directory that gets a file for each message.
    """
    with other_process(_serve, None, store) as port:
        yield port


@contextmanager
def recording_smtp_sink(log: Path) -> Iterator[int]:
    """Yield the port of a sink without delay that appends the recipient of each message to a file."""
    with other_process(_serve, log, None) as port:
        yield port


def _serve(log: Path | None, store: Path | None, ports: Connection) -> None:
    async def serve() -> None:
        protocol: Callable[[], asyncio.Protocol] = partial(_DelayedProtocol, store)
        if log:
            protocol = partial(_RecordingProtocol, log.open("a", buffering=1))
        server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0, backlog=1000)
        ports.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


class _DelayedProtocol(asyncio.Protocol):
    """Minimal SMTP server with PIPELINING; replies to commands that arrive together are sent together."""

    def __init__(self, store: Path | None = None) -> None:
        self._store = store

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._rest = b""
        self._in_data = False
        self._reply([b"220 sink ESMTP"])

    def data_received(self, data: bytes) -> None:
        self._rest += data
        replies = []
        while (line := self._next_line()) is not None:
            reply = self._answer(line)
            if reply:
                replies.append(reply)
        if replies:
            self._reply(replies)

    def _next_line(self) -> bytes | None:
        if self._in_data:
            message, found, rest = self._rest.partition(b"\r\n.\r\n")
            if not found:
                return None
            if self._store:
                (self._store / uuid4().hex).write_bytes(message.replace(b"\r\n..", b"\r\n.") + b"\r\n")
            self._in_data, self._rest = False, rest
            return b"."
        line, found, rest = self._rest.partition(b"\r\n")
        if not found:
            return None
        self._rest = rest
        return line

    def _answer(self, line: bytes) -> bytes:
        verb = line[:4].upper()
        if verb == b"DATA":
            self._in_data = True
            return b"354 go ahead"
        if verb == b"EHLO":
            return b"250-sink\r\n250 PIPELINING"
        return b"221 bye" if verb == b"QUIT" else b"250 2.0.0 ok"

    def _reply(self, lines: list[bytes]) -> None:
        asyncio.get_running_loop().call_later(ROUND_TRIP_SECONDS, self._transport.write, b"\r\n".join([*lines, b""]))


class _RecordingProtocol(_DelayedProtocol):
    """The same without delay, recording recipients."""

    def __init__(self, log: TextIO) -> None:
        super().__init__()
        self._log = log
        self._recipient = ""

    def _answer(self, line: bytes) -> bytes:
        if line[:8].upper() == b"RCPT TO:":
            self._recipient = line[8:].decode().partition(">")[0].strip(" <")
        if line == b".":
            self._log.write(f"{self._recipient}\n")
        return super()._answer(line)

    def _reply(self, lines: list[bytes]) -> None:
        self._transport.write(b"\r\n".join([*lines, b""]))
