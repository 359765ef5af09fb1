"""HTTP server on loopback that records requests and sends the responses that a test needs, including broken ones.

with Receiver() as receiver:
    receiver.answer = status(503, "Retry-After: 7")
    ... receiver.url("/hook") ... receiver.received
"""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Self

from tests.event_loops import running_loop


@dataclass(frozen=True)
class Received:
    """A received request. Header names keep their spelling."""

    path: str
    headers: dict[str, str]
    body: bytes
    at: float

    def header(self, name: str) -> str | None:
        return {key.lower(): value for key, value in self.headers.items()}.get(name)


Answer = Callable[[Received, asyncio.StreamWriter], Awaitable[Any]]


def status(code: int, *headers: str, body: bytes = b"ok") -> Answer:
    async def reply(request: Received, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {code} Status", f"Content-Length: {len(body)}", *headers]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await writer.drain()

    return reply


def raw(data: bytes) -> Answer:
    """Send raw bytes, then close the connection."""

    async def reply(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.close()

    return reply


def drip(data: bytes, *, every_seconds: float, tail: bytes = b"x") -> Answer:
    """Send bytes, then repeat the tail forever."""

    async def reply(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        while True:
            await writer.drain()
            await asyncio.sleep(every_seconds)
            writer.write(tail)

    return reply


async def silence(request: Received, writer: asyncio.StreamWriter) -> None:
    """Never respond."""
    await asyncio.sleep(3600)


async def reset(request: Received, writer: asyncio.StreamWriter) -> None:
    """Reset the connection with an RST."""
    writer.transport.abort()


class Receiver:
    """A server on a free port of 127.0.0.1, or of `host`, in its own thread."""

    def __init__(self, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        self.answer: Answer = status(200)
        # Answers by path; they take precedence over `answer`.
        self.answers: dict[str, Answer] = {}
        self.received: list[Received] = []
        self.connections = 0
        self._host, self._tls = host, tls
        self._running = running_loop()

    def __enter__(self) -> Self:
        self._loop = self._running.__enter__()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(5)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(5)
        self._running.__exit__(None, None, None)

    def url(self, path: str = "/hook", *, host: str = "") -> str:
        return f"{'https' if self._tls else 'http'}://{host or self._host}:{self.port}{path}"

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, self._host, 0, ssl=self._tls, limit=2**20)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        self._server.close()
        # Connections accepted just before have no task yet.
        await asyncio.sleep(0.01)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while request := await _read(reader):
                self.received.append(request)
                await self.answers.get(request.path, self.answer)(request, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> Received | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    sizes = [value for name, value in headers.items() if name.lower() == "content-length"]
    body = await reader.readexactly(int(sizes[0])) if sizes else b""
    return Received(first.split(" ")[1], headers, body, time.monotonic())
