"""The events of the workspace in order: `client.events`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from postrider_client.answers import FeedEvent
from postrider_client.transport import Call, Transport
from postrider_client.wire import body_of, read


@dataclass(frozen=True)
class EventPage:
    """A page of events.

    `cursor`: pass it as `after` to continue, also if the page is empty.
    `has_more`: later events exist already.
    """

    data: list[FeedEvent]
    cursor: str
    has_more: bool


class EventListing:
    """All events until now when iterated; `fetch()` returns the requested page."""

    def __init__(self, transport: Transport, *, query: Mapping[str, Any]) -> None:
        self._transport = transport
        self._query = query

    def fetch(self) -> EventPage:
        return self._page({})

    def __iter__(self) -> Iterator[FeedEvent]:
        page = self.fetch()
        yield from page.data
        while page.has_more:
            page = self._page({"after": page.cursor})
            yield from page.data

    def _page(self, changes: Mapping[str, Any]) -> EventPage:
        answer = self._transport.json(Call("GET", ["events"], query={**self._query, **changes}))
        return EventPage([read(FeedEvent, item) for item in answer["data"]], answer["cursor"], answer["hasMore"])


class Events:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self, *, after: Optional[str] = None, types: Optional[Sequence[str]] = None, limit: Optional[int] = None
    ) -> EventListing:
        """List events, oldest first.

        after: the cursor of an event or page, or "latest".
        types: only these types.
        """
        return EventListing(self._transport, query=body_of(after=after, types=types, limit=limit))

    def stream(self, *, after: Optional[str] = None, types: Optional[Sequence[str]] = None) -> Iterator[FeedEvent]:
        """Yield events when they occur, by default from now on, until the server closes the connection.

        It does so after an hour at the latest. To continue, call `stream` again with the cursor of the last event.
        Without events the server sends a heartbeat every 15 seconds: timeout_seconds must be longer.
        """
        query = body_of(after=after, types=types)
        return self._transport.stream(Call("GET", ["events", "stream"], query=query), kind=FeedEvent)
