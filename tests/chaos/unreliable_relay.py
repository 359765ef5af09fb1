"""Proxy before a mail sink that breaks connections: refuses or cuts them, falls silent, or demands a login."""

import asyncio
import contextlib
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.event_loops import close_loop
from tests.stack.stack import free_port

# More bytes than a dialogue has in either direction, for a place that may lie anywhere in it.
REPLY_BYTES, COMMAND_BYTES = 300, 3000
# Much less than the timeout of a worker, so that a run ends in time.
SILENT_SECONDS = 6.0
MODES = ("works", "refuses", "cuts_replies", "cuts_commands", "falls_silent", "demands_login")


@dataclass
class UnreliableRelay:
    """A proxy to the port of a sink. mode: of MODES, for new connections."""

    name: str
    target: int
    port: int = field(default_factory=free_port)
    mode: str = "works"
    chance: random.Random = field(default_factory=random.Random)
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _loop: asyncio.AbstractEventLoop | None = None

    def set_mode(self, mode: str) -> None:
        """Change the mode, and cut the present connections unless it is `works`."""
        self.mode = mode
        if self._loop and mode != "works":
            self._loop.call_soon_threadsafe(self._cut)

    def _cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._loop = asyncio.get_running_loop()
        mode = self.mode
        try:
            if mode == "demands_login":
                await _demand_login(reader, writer)
            elif mode != "refuses":
                await self._pass(reader, writer, mode)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            with contextlib.suppress(AttributeError):
                writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, mode: str) -> None:
        sink_reader, sink_writer = await asyncio.open_connection("127.0.0.1", self.target)
        self._writers |= {writer, sink_writer}
        replies = self.chance.randrange(REPLY_BYTES) if mode in ("cuts_replies", "falls_silent") else None
        commands = self.chance.randrange(COMMAND_BYTES) if mode == "cuts_commands" else None
        pumps = [
            asyncio.create_task(_pump(sink_reader, writer, replies)),
            asyncio.create_task(_pump(reader, sink_writer, commands)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            if mode == "falls_silent":
                # Half open: the sink reads on, and no reply passes.
                await asyncio.sleep(SILENT_SECONDS)
        finally:
            self._writers -= {writer, sink_writer}
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            with contextlib.suppress(AttributeError):
                sink_writer.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int | None) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            passed = data if limit is None else data[:limit]
            writer.write(passed)
            await writer.drain()
            if limit is not None:
                limit -= len(passed)
                if limit <= 0:
                    return


async def _demand_login(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer as a relay whose account was closed."""
    writer.write(b"220 relay.example ESMTP\r\n")
    while line := await reader.readline():
        is_greeting = line.upper().startswith((b"EHLO", b"HELO"))
        writer.write(b"250 relay.example\r\n" if is_greeting else b"530 5.7.0 Authentication required\r\n")
        await writer.drain()


@contextmanager
def unreliable_relay(name: str, target: int) -> Iterator[UnreliableRelay]:
    """Run the proxy in a thread."""
    relay, loop, started = UnreliableRelay(name, target), asyncio.new_event_loop(), threading.Event()

    async def run() -> None:
        relay._loop = loop
        server = await asyncio.start_server(relay.serve, "127.0.0.1", relay.port)
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            server.close()

    task = loop.create_task(run())

    def work() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        close_loop(loop)

    thread = threading.Thread(target=work, name=f"relay {name}")
    thread.start()
    started.wait(10)
    try:
        yield relay
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(20)
