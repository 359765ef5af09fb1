# Generated from streams.py by bin/async_client.py.
"""Stream operations: `client.streams`."""

from typing import Any, Optional

from postrider_client.aio.listing import AsyncListing
from postrider_client.aio.transport import AsyncTransport
from postrider_client.answers import Stream
from postrider_client.transport import Call
from postrider_client.wire import body_of, read, wire_name


class AsyncStreams:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self,
        *,
        id: str,
        name: str,
        description: Optional[str] = None,
        kind: Optional[str] = None,
        unsubscribe: Optional[str] = None,
        scope: Optional[str] = None,
        own_bounces: Optional[bool] = None,
        ignores_unsubscribes: Optional[bool] = None,
        public: Optional[bool] = None,
        priority: Optional[str] = None,
        track_opens: Optional[bool] = None,
        track_clicks: Optional[bool] = None,
        transport_route: Optional[str] = None,
    ) -> Stream:
        """Create a kind of email with its own unsubscribes and complaints. Emails name it as `stream`.

        id: such as "newsletter". Cannot be changed later.
        kind: "transactional" or "bulk". Cannot be changed later.
        unsubscribe: "link", "headers" or "none".
        scope: "stream" or "workspace".
        priority: "high", "normal" or "low".
        transport_route: one of the operator's, if the workspace may use several.
        """
        body = body_of(**{name: value for name, value in locals().items() if name != "self"})
        return read(Stream, await self._transport.json(Call("POST", ["streams"], body=body)))

    def list(self, *, page: Optional[int] = None, limit: Optional[int] = None) -> AsyncListing[Stream]:
        """Return `main`, which every workspace has, then the others, oldest first."""
        return AsyncListing(self._transport, ["streams"], kind=Stream, query=body_of(page=page, limit=limit))

    async def get(self, stream_id: str) -> Stream:
        return read(Stream, await self._transport.json(Call("GET", ["streams", stream_id])))

    async def update(self, stream_id: str, **changes: Any) -> Stream:
        """Update the given fields, named as in `create`, except id and kind."""
        body = {wire_name(name): value for name, value in changes.items()}
        return read(Stream, await self._transport.json(Call("PATCH", ["streams", stream_id], body=body)))

    async def archive(self, stream_id: str) -> Stream:
        """Stop accepting emails of a stream. Emails that it has accepted are sent."""
        return read(
            Stream, await self._transport.json(Call("POST", ["streams", stream_id, "archive"], is_repeatable=True))
        )

    async def unarchive(self, stream_id: str) -> Stream:
        return read(
            Stream, await self._transport.json(Call("POST", ["streams", stream_id, "unarchive"], is_repeatable=True))
        )
