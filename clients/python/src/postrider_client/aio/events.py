"""The events of the workspace in order: `client.events`."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Optional

from postrider_client.aio.transport import AsyncTransport
from postrider_client.answers import FeedEvent
from postrider_client.events import EventPage
from postrider_client.transport import Call
from postrider_client.wire import body_of, read


class AsyncEventListing:
    """All events until now when iterated; `fetch()` returns the requested page."""

    def __init__(self, transport: AsyncTransport, *, query: Mapping[str, Any]) -> None:
        self._transport = transport
        self._query = query

    async def fetch(self) -> EventPage:
        return await self._page({})

    async def __aiter__(self) -> AsyncGenerator[FeedEvent, None]:
        page = await self.fetch()
        for item in page.data:
            yield item
        while page.has_more:
            page = await self._page({"after": page.cursor})
            for item in page.data:
                yield item

    async def _page(self, changes: Mapping[str, Any]) -> EventPage:
        answer = await self._transport.json(Call("GET", ["events"], query={**self._query, **changes}))
        return EventPage([read(FeedEvent, item) for item in answer["data"]], answer["cursor"], answer["hasMore"])


class AsyncEvents:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(
        self, *, after: Optional[str] = None, types: Optional[Sequence[str]] = None, limit: Optional[int] = None
    ) -> AsyncEventListing:
        """List events, oldest first.

        after: the cursor of an event or page, or "latest".
        types: only these types.
        """
        return AsyncEventListing(self._transport, query=body_of(after=after, types=types, limit=limit))

    def stream(
        self, *, after: Optional[str] = None, types: Optional[Sequence[str]] = None
    ) -> AsyncGenerator[FeedEvent, None]:
        """Yield events when they occur, by default from now on, until the server closes the connection.

        It does so after an hour at the latest. To continue, call `stream` again with the cursor of the last event.
        Without events the server sends a heartbeat every 15 seconds: timeout_seconds must be longer.
        """
        query = body_of(after=after, types=types)
        return self._transport.stream(Call("GET", ["events", "stream"], query=query), kind=FeedEvent)
