"""Server-sent events: one thread of each web process serves all streams (docs/decisions/0143).

A view authenticates the request and passes the client's socket to that thread, so that no thread of the web server
waits for a reader.
"""

import asyncio
import errno
import json
import logging
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar

from django.db import DatabaseError, close_old_connections, connections
from django.http import StreamingHttpResponse

from api.errors import RateLimitExceeded
from events.api.serializers import DEFAULT_LIMIT, render_page
from events.feed import make_cursor, read_feed
from events.models import FeedHead
from lib.worker.once import once
from workspaces.api.authentication import is_active_key

MAX_STREAMS = 500
MAX_STREAMS_PER_WORKSPACE = 250
MAX_SECONDS = 3600
POLL_SECONDS = 0.5
# Proxies close a connection that is silent for a minute.
HEARTBEAT_SECONDS = 15
# A client that does not read for this long is disconnected.
STALLED_SECONDS = 20
MAX_SHARED_PAGES = 50
# Of a response without a socket.
MAX_PAGES = 10
START = b"retry: 2000\n\n"
HEARTBEAT = b": waiting\n\n"

R = TypeVar("R")
log = logging.getLogger("postrider.processes")


@dataclass(frozen=True)
class Subscription:
    """The events that a stream sends. key_id: the API key, which must stay active."""

    key_id: str
    workspace_id: str
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class StreamPage:
    """A page of events as bytes. position: the stream continues here."""

    body: bytes
    position: int
    has_more: bool


class StreamResponse(StreamingHttpResponse):
    """A response whose body the stream thread sends. client: the socket of gunicorn's connection.

    Without a socket, on another server, the response has the next MAX_PAGES pages and ends: clients connect again.
    """

    def __init__(self, subscription: Subscription, *, after: int, client: socket.socket | None) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        if client:
            stream_server().refuse_excess(subscription)
        body = SocketTransfer(self, client, subscription, after) if client else _events_until_now(subscription, after)
        super().__init__(body, content_type="text/event-stream", headers=headers)


@dataclass
class SocketTransfer:
    """An iterator that passes the client's socket to the stream thread when the web server begins to send the body."""

    response: StreamingHttpResponse
    client: socket.socket
    subscription: Subscription
    after: int

    def __iter__(self) -> "SocketTransfer":
        return self

    def __next__(self) -> bytes:
        # Detached, because gunicorn shuts its socket down after the response.
        connection = socket.socket(fileno=self.client.detach())
        stream_server().serve(connection, self.subscription, after=self.after, head=self._head())
        # Ends the response without another byte: gunicorn ignores that a client is gone.
        raise BrokenPipeError(errno.EPIPE, "the socket was passed to the stream thread")

    def _head(self) -> bytes:
        status = HTTPStatus(self.response.status_code)
        headers = (f"{name}: {value}" for name, value in self.response.items())
        lines = [f"HTTP/1.1 {status.value} {status.phrase}", *headers, "Connection: close", "", ""]
        return "\r\n".join(lines).encode("latin-1")


@once
def stream_server() -> "StreamServer":
    """Return the stream server of this process, which begins with the first stream."""
    return StreamServer()


@dataclass
class StreamServer:
    """An event loop in a thread. Streams at the same position share the page that they read next."""

    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    database: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "events"))
    open: Counter[str] = field(default_factory=Counter)
    pages: dict[tuple[Any, ...], "asyncio.Task[StreamPage]"] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    poll: "asyncio.Task[None] | None" = None
    tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    def __post_init__(self) -> None:
        threading.Thread(target=self.loop.run_forever, name="streams", daemon=True).start()

    def refuse_excess(self, subscription: Subscription) -> None:
        """Raise RateLimitExceeded if the process or the workspace has too many streams."""
        is_full = self.open.total() >= MAX_STREAMS
        if is_full or self.open[subscription.workspace_id] >= MAX_STREAMS_PER_WORKSPACE:
            raise RateLimitExceeded("Too many event streams are open.", headers={"Retry-After": "10"})

    def serve(self, connection: socket.socket, subscription: Subscription, *, after: int, head: bytes) -> None:
        """Send events to a client until it disconnects. Called in any thread."""
        self.loop.call_soon_threadsafe(self._start, connection, subscription, after, head)

    def _start(self, connection: socket.socket, subscription: Subscription, after: int, head: bytes) -> None:
        self.open[subscription.workspace_id] += 1
        if self.poll is None or self.poll.done():
            self.poll = self.loop.create_task(self._poll())
        task = self.loop.create_task(self._serve(connection, subscription, after, head))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _poll(self) -> None:
        """Wake the streams when the feed has grown, as long as there are any."""
        position = -1
        while self.open.total():
            with suppress(DatabaseError):
                newest = await self._query(_head_position)
                if newest != position:
                    position = newest
                    self._wake_streams()
            await asyncio.sleep(POLL_SECONDS)
            if not self.open.total():
                await self._query(connections.close_all)

    def _wake_streams(self) -> None:
        self.pages.clear()
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    async def _serve(self, connection: socket.socket, subscription: Subscription, after: int, head: bytes) -> None:
        try:
            await self._serve_until_end(connection, subscription, after, head)
        finally:
            self.open[subscription.workspace_id] -= 1

    async def _serve_until_end(
        self, connection: socket.socket, subscription: Subscription, after: int, head: bytes
    ) -> None:
        connection.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=connection)
        sender = asyncio.create_task(self._send(writer, subscription, after, head))
        # The client has nothing more to send: this returns when it disconnects.
        disconnection = asyncio.create_task(reader.read(1))
        await asyncio.wait({sender, disconnection}, timeout=MAX_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for task in (sender, disconnection):
            task.cancel()
        for result in await asyncio.gather(sender, disconnection, return_exceptions=True):
            if isinstance(result, Exception) and not isinstance(result, OSError | DatabaseError):
                log.error("an event stream failed", exc_info=result)
        writer.transport.abort()

    async def _send(self, writer: asyncio.StreamWriter, subscription: Subscription, after: int, head: bytes) -> None:
        await _write(writer, head + START)
        while await self._query(is_active_key, subscription.key_id):
            # Read before the page, so that no change is missed.
            changed = self.changed
            page = await self._read_page(subscription, after)
            await _write(writer, page.body)
            after = page.position
            if not page.has_more and not await _is_set(changed):
                await _write(writer, HEARTBEAT)

    async def _read_page(self, subscription: Subscription, after: int) -> StreamPage:
        key = (subscription.workspace_id, subscription.kinds, after)
        if key not in self.pages or _has_failed(self.pages[key]):
            if len(self.pages) >= MAX_SHARED_PAGES:
                self.pages.clear()
            self.pages[key] = self.loop.create_task(self._query(read_page, *key))
        # A stream that ends must not cancel the read of the others.
        return await asyncio.shield(self.pages[key])

    async def _query(self, function: Callable[..., R], *arguments: Any) -> R:
        return await self.loop.run_in_executor(self.database, _run_query, function, *arguments)


def read_page(workspace_id: str, kinds: tuple[str, ...], after: int) -> StreamPage:
    """Read the next page of a stream. A page without events still moves the cursor of the client."""
    page = read_feed(workspace_id, after=after, kinds=kinds, limit=DEFAULT_LIMIT)
    rendered = render_page(page, workspace_id=workspace_id)
    text = "".join(map(_format_event, rendered["data"]))
    if not text and page.position != after:
        text = f"id: {make_cursor(workspace_id, page.position)}\n\n"
    return StreamPage(text.encode(), page.position, page.has_more)


def _format_event(event: dict[str, Any]) -> str:
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f"id: {event['cursor']}\nevent: {event['type']}\ndata: {data}\n\n"


def _events_until_now(subscription: Subscription, after: int) -> Iterator[bytes]:
    yield START
    for _ in range(MAX_PAGES):
        page = read_page(subscription.workspace_id, subscription.kinds, after)
        yield page.body
        if not page.has_more:
            return
        after = page.position


def _has_failed(task: "asyncio.Task[Any]") -> bool:
    return task.done() and task.exception() is not None


def _head_position() -> int:
    return FeedHead.objects.values_list("position", flat=True).first() or 0


def _run_query(function: Callable[..., R], *arguments: Any) -> R:
    try:
        return function(*arguments)
    finally:
        close_old_connections()


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write to a client. Raises TimeoutError if it does not read."""
    if data:
        writer.write(data)
        await asyncio.wait_for(writer.drain(), STALLED_SECONDS)


async def _is_set(event: asyncio.Event) -> bool:
    """Wait for the event, at most HEARTBEAT_SECONDS; return whether it is set."""
    try:
        return await asyncio.wait_for(event.wait(), HEARTBEAT_SECONDS)
    except TimeoutError:
        return False
