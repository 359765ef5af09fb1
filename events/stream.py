"""Server-sent events: the thread of slow clients serves all event streams of a process (docs/decisions/0143)."""

import asyncio
import functools
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from django.db import DatabaseError, connections

from core.api.errors import TooManyConcurrentRequests
from core.api.transfers import TransferredResponse
from core.lib.network.slow_clients import SlowClients, slow_clients, write
from core.lib.worker.once import once
from core.workspaces.api.authentication import is_active_key
from events.api.serializers import DEFAULT_LIMIT, render_page
from events.feed import make_cursor, read_feed
from events.kinds import EventBody
from events.models import FeedHead

# The kind of these connections among the slow clients.
KIND = "stream"
MAX_EVENT_STREAMS = 500
MAX_EVENT_STREAMS_PER_WORKSPACE = 250
MAX_SECONDS = 3600
POLL_SECONDS = 0.5
# Proxies close a connection that is silent for a minute.
HEARTBEAT_SECONDS = 15
MAX_SHARED_PAGES = 50
# Where the server hands over no socket, a response ends after this many pages.
MAX_PAGES = 10
START = b"retry: 2000\n\n"
HEARTBEAT = b": waiting\n\n"


@dataclass(frozen=True)
class Subscription:
    """The events that an event stream sends. key_id: the API key, which must stay active."""

    key_id: str
    workspace_id: str
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class EventStreamPage:
    """A page of events as bytes. position: the stream continues here."""

    body: bytes
    position: int
    has_more: bool


class EventStreamResponse(TransferredResponse):
    """A response without an end. client: the socket of gunicorn's connection.

    Without a socket, on another server, the response has the next MAX_PAGES pages and ends: clients connect again.
    """

    def __init__(self, subscription: Subscription, *, after: int, client: socket.socket | None) -> None:
        self.subscription, self.after = subscription, after
        if client:
            _refuse_excess(subscription.workspace_id)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        pages = _events_until_now(subscription, after)
        super().__init__(pages, client=client, content_type="text/event-stream", headers=headers)

    def transfer(self, connection: socket.socket, head: bytes) -> None:
        event_streams().serve(connection, self.subscription, after=self.after, head=head)


def _refuse_excess(workspace_id: str) -> None:
    """Raise TooManyConcurrentRequests if the process or the workspace has too many event streams."""
    if slow_clients().is_full(KIND, workspace_id, at_most=MAX_EVENT_STREAMS, of_share=MAX_EVENT_STREAMS_PER_WORKSPACE):
        raise TooManyConcurrentRequests("Too many event streams are open.", headers={"Retry-After": "10"})


@once
def event_streams() -> "EventStreams":
    """Return the event streams of this process."""
    return EventStreams(slow_clients())


@dataclass
class EventStreams:
    """Event streams at the same position share the page that they read next."""

    clients: SlowClients
    pages: dict[tuple[Any, ...], "asyncio.Task[EventStreamPage]"] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    poll: "asyncio.Task[None] | None" = None

    def serve(self, connection: socket.socket, subscription: Subscription, *, after: int, head: bytes) -> None:
        """Send events to a client until it disconnects. Called in any thread."""
        send = functools.partial(self._send_until_end, subscription=subscription, after=after, head=head)
        share = subscription.workspace_id
        self.clients.serve(connection, send, kind=KIND, share=share, seconds=MAX_SECONDS)

    async def _poll(self) -> None:
        """Wake the streams when the feed has grown, as long as there are any."""
        position = -1
        while self.clients.count(KIND):
            with suppress(DatabaseError):
                newest = await self.clients.query(_head_position)
                if newest != position:
                    position = newest
                    self._wake_all()
            await asyncio.sleep(POLL_SECONDS)
        await self.clients.query(connections.close_all)

    def _wake_all(self) -> None:
        self.pages.clear()
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    async def _send_until_end(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        subscription: Subscription,
        after: int,
        head: bytes,
    ) -> None:
        if self.poll is None or self.poll.done():
            self.poll = asyncio.create_task(self._poll())
        sender = asyncio.create_task(self._send(writer, subscription, after, head))
        # The client has nothing more to send: this returns when it disconnects.
        disconnection = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait({sender, disconnection}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sender, disconnection):
                task.cancel()
            results = await asyncio.gather(sender, disconnection, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, OSError | DatabaseError):
                raise result

    async def _send(self, writer: asyncio.StreamWriter, subscription: Subscription, after: int, head: bytes) -> None:
        await write(writer, head + START)
        while await self.clients.query(is_active_key, subscription.key_id):
            # Read before the page, so that no change is missed.
            changed = self.changed
            page = await self._read_page(subscription, after)
            await write(writer, page.body)
            after = page.position
            if not page.has_more and not await _is_set(changed):
                await write(writer, HEARTBEAT)

    async def _read_page(self, subscription: Subscription, after: int) -> EventStreamPage:
        key = (subscription.workspace_id, subscription.kinds, after)
        if key not in self.pages or _has_failed(self.pages[key]):
            if len(self.pages) >= MAX_SHARED_PAGES:
                self.pages.clear()
            self.pages[key] = asyncio.create_task(self.clients.query(read_page, *key))
        # A stream that ends must not cancel the read of the others.
        return await asyncio.shield(self.pages[key])


def read_page(workspace_id: str, kinds: tuple[str, ...], after: int) -> EventStreamPage:
    """Read the next page of a stream. A page without events still moves the cursor of the client."""
    page = read_feed(workspace_id, after=after, kinds=kinds, limit=DEFAULT_LIMIT)
    rendered = render_page(page, workspace_id=workspace_id)
    text = "".join(map(_format_event, rendered["data"]))
    if not text and page.position != after:
        text = f"id: {make_cursor(workspace_id, page.position)}\n\n"
    return EventStreamPage(text.encode(), page.position, page.has_more)


def _format_event(event: EventBody) -> str:
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


async def _is_set(event: asyncio.Event) -> bool:
    """Wait for the event, at most HEARTBEAT_SECONDS; return whether it is set."""
    try:
        return await asyncio.wait_for(event.wait(), HEARTBEAT_SECONDS)
    except TimeoutError:
        return False
