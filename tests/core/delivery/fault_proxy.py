"""TCP proxy on loopback that stops passing bytes at a given place of a connection: replies or commands are lost there.

async with FaultProxy(server.port, replies=120) as proxy:
    ... proxy.port
"""

import asyncio
import contextlib
from typing import Any, Self


class FaultProxy:
    """replies, commands: the number of bytes that pass in each direction, None for all. is_silent: keep the connection.

    Once the bytes are used up, both connections are reset, or stay open without another byte.
    """

    def __init__(
        self, target: int, *, replies: int | None = None, commands: int | None = None, is_silent: bool = False
    ) -> None:
        self.target = target
        self.replies = replies
        self.commands = commands
        self.is_silent = is_silent
        self.port = 0
        self.passed_replies = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    def heal(self) -> None:
        """Pass everything on later connections."""
        self.replies = self.commands = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0.002)
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0.001)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self.target)
        try:
            replies = asyncio.create_task(self._pump(upstream_reader, writer, self.replies, is_reply=True))
            commands = asyncio.create_task(self._pump(reader, upstream_writer, self.commands, is_reply=False))
            done, rest = await asyncio.wait({replies, commands}, return_when=asyncio.FIRST_COMPLETED)
            if self.is_silent and any(one.result() for one in done):
                # The other side goes on until its bytes are read; nobody hears the rest.
                await asyncio.wait(rest, timeout=30)
            for one in rest:
                one.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
        finally:
            self._tasks.discard(task)
            for one_writer in (writer, upstream_writer):
                with contextlib.suppress(AttributeError, OSError):
                    one_writer.close()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int | None, *, is_reply: bool
    ) -> bool:
        """Pass bytes until the limit or the end; return whether the limit was reached."""
        left = limit
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                passed = data if left is None else data[:left]
                if is_reply:
                    self.passed_replies += len(data)
                writer.write(passed)
                await writer.drain()
                if left is not None:
                    left -= len(passed)
                    if left <= 0:
                        return True
        return False
