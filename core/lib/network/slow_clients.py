"""Clients that read slowly: one thread of each process writes to all of them.

A request thread writes as much as the kernel takes at once and passes the rest, or a response that never ends, to this
thread. So no reader holds a request thread (docs/decisions/0178).
"""

import asyncio
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from django.db import close_old_connections

from core.lib.worker.once import once

# A client that takes nothing for this long is disconnected.
STALLED_SECONDS = 20.0
# A response that is complete must be taken in this time, and a second more for each LEAST_BYTES.
REST_SECONDS = 30.0
LEAST_BYTES = 32 * 1024
# The rests of responses that this process keeps; one share may have a quarter.
MAX_REST_BYTES = 64 * 1024 * 1024
SHARE_OF_REST = 4
# The kinds of responses that end, unlike event streams.
REST, FILE = "rest", "file"
# The lines of a file that are read at once.
LINES = 200
# After the response, for a client that is still sending: closing at once would discard the response.
LINGER_SECONDS = 2.0
LINGER_BYTES = 32 * 1024 * 1024
READ_BYTES = WRITE_BYTES = 256 * 1024

R = TypeVar("R")
Send = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
log = logging.getLogger("postrider.processes")


@once
def slow_clients() -> "SlowClients":
    """Return the slow clients of this process; their thread begins with the first."""
    return SlowClients()


@dataclass
class SlowClients:
    """An event loop in a thread.

    open: connections by kind and share.
    rests: bytes by share that clients must take.
    """

    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    database: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "slow-clients"))
    open: Counter[tuple[str, str]] = field(default_factory=Counter)
    rests: Counter[str] = field(default_factory=Counter)
    tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        threading.Thread(target=self.loop.run_forever, name="slow-clients", daemon=True).start()

    def serve(self, connection: socket.socket, send: Send, *, kind: str, share: str, seconds: float) -> None:
        """Send a response to a client, within the given time. Called in any thread."""
        self._add(self.open, (kind, share), 1)
        self.loop.call_soon_threadsafe(self._start, connection, send, (kind, share), seconds)

    def send_rest(self, connection: socket.socket, rest: Sequence[memoryview], *, share: str, is_cut: bool) -> None:
        """Send the rest of a response. is_cut: the client may still be sending its request."""
        size = sum(map(len, rest))
        if not self._has_room(share, size):
            log.warning("a client that reads slowly was disconnected", extra={"data": {"share": share}})
            connection.close()
            return
        self._add(self.rests, share, size)

        async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                for piece in rest:
                    for start in range(0, len(piece), WRITE_BYTES):
                        await write(writer, piece[start : start + WRITE_BYTES])
                if is_cut:
                    await _linger(reader, writer)
            finally:
                self._add(self.rests, share, -size)

        self.serve(connection, send, kind=REST, share=share, seconds=REST_SECONDS + size / LEAST_BYTES)

    def send_lines(
        self,
        connection: socket.socket,
        head: bytes,
        lines: Iterator[bytes],
        *,
        frame: Callable[[bytes], bytes],
        share: str,
        seconds: float,
    ) -> None:
        """Send a response whose lines are read as the client takes them.

        frame: returns some lines as they are sent, and the end of the body for none.
        """

        async def send(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await write(writer, head)
            started = time.monotonic()
            while piece := await self.query(_join_next, lines):
                # Leaves half of this thread's time to others.
                await asyncio.sleep(time.monotonic() - started)
                await write(writer, frame(piece))
                started = time.monotonic()
            await write(writer, frame(b""))

        self.serve(connection, send, kind=FILE, share=share, seconds=seconds)

    def is_full(self, kind: str, share: str, *, at_most: int, of_share: int) -> bool:
        """Return whether a kind has as many connections as it may have, of all or of one share."""
        return self.count(kind) >= at_most or self.count(kind, share) >= of_share

    def count(self, kind: str, share: str | None = None) -> int:
        """Return the number of open connections of a kind, of one share or of all."""
        if share is not None:
            return self.open[kind, share]
        return sum(number for (name, _), number in list(self.open.items()) if name == kind)

    def stop(self, seconds: float) -> None:
        """Wait until responses that end are sent, and end the others: before the process exits."""
        deadline = time.monotonic() + seconds
        while self.count(REST) + self.count(FILE) and time.monotonic() < deadline:
            time.sleep(0.02)
        asyncio.run_coroutine_threadsafe(self._end_all(), self.loop).result(STALLED_SECONDS)

    async def _end_all(self) -> None:
        # At the exit, the next query of a response would be an error: the executor takes no more.
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def query(self, function: Callable[..., R], *arguments: Any) -> R:
        """Run a function that reads from the database, one at a time."""
        return await self.loop.run_in_executor(self.database, _run_query, function, *arguments)

    def _has_room(self, share: str, size: int) -> bool:
        """Return whether the rest of a response fits; one response of a share always does, if the total allows it."""
        of_share, total = self.rests[share], self.rests.total()
        return (not of_share or of_share + size <= MAX_REST_BYTES // SHARE_OF_REST) and total + size <= MAX_REST_BYTES

    def _add(self, counter: Counter[Any], key: Any, number: int) -> None:
        with self._lock:
            counter[key] += number
            if not counter[key]:
                del counter[key]

    def _start(self, connection: socket.socket, send: Send, kind: tuple[str, str], seconds: float) -> None:
        task = self.loop.create_task(self._serve(connection, send, kind, seconds))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _serve(self, connection: socket.socket, send: Send, kind: tuple[str, str], seconds: float) -> None:
        connection.setblocking(False)
        writer = None
        try:
            reader, writer = await asyncio.open_connection(sock=connection, limit=READ_BYTES)
            # Written data counts when the client has taken it.
            writer.transport.set_write_buffer_limits(high=0)
            await asyncio.wait_for(send(reader, writer), seconds)
            writer.close()
        except (OSError, TimeoutError):
            # The client is gone, or too slow.
            pass
        except Exception:
            log.exception("a response to a slow client failed")
        finally:
            self._add(self.open, kind, -1)
            if writer is None:
                connection.close()
            elif not writer.transport.is_closing():
                writer.transport.abort()


async def write(writer: asyncio.StreamWriter, data: bytes | memoryview) -> None:
    """Write to a client. Raises TimeoutError if it does not read."""
    if data:
        writer.write(data)
        await asyncio.wait_for(writer.drain(), STALLED_SECONDS)


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Discard all that the client sends until it has read the response (RFC 9112, section 9.6)."""
    writer.write_eof()
    left = LINGER_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while left > 0 and (data := await reader.read(READ_BYTES)):
                left -= len(data)


def _join_next(lines: Iterator[bytes]) -> bytes:
    return b"".join(islice(lines, LINES))


def _run_query(function: Callable[..., R], *arguments: Any) -> R:
    try:
        return function(*arguments)
    finally:
        close_old_connections()
