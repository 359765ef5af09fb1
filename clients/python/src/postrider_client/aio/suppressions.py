# Generated from suppressions.py by bin/async_client.py.
"""Suppression operations: `client.suppressions`."""

from collections.abc import Sequence
from typing import Optional

from postrider_client.aio.listing import AsyncListing
from postrider_client.aio.transport import AsyncTransport
from postrider_client.answers import Deleted, Suppression
from postrider_client.transport import Call
from postrider_client.wire import body_of, read


class AsyncSuppressions:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(self, email: str, *, stream: Optional[str] = None) -> Suppression:
        """Suppress an address. An address already suppressed keeps its reason.

        stream: the only stream to block; None blocks all of the workspace.
        """
        call = Call("POST", ["suppressions"], body=body_of(email=email, stream=stream), is_repeatable=True)
        return read(Suppression, await self._transport.json(call))

    async def create_many(self, emails: Sequence[str], *, stream: Optional[str] = None) -> list[Suppression]:
        """Suppress up to 1,000 addresses. stream: as in `create`."""
        body = body_of(emails=list(emails), stream=stream)
        call = Call("POST", ["suppressions"], body=body, is_repeatable=True)
        return [read(Suppression, one) for one in (await self._transport.json(call))["data"]]

    def list(
        self,
        *,
        reason: Optional[str] = None,
        search: Optional[str] = None,
        stream: Optional[str] = None,
        page: Optional[int] = None,
        limit: Optional[int] = None,
    ) -> AsyncListing[Suppression]:
        """Return matching suppressions, newest first. stream: only those of this stream."""
        query = body_of(reason=reason, search=search, stream=stream, page=page, limit=limit)
        return AsyncListing(self._transport, ["suppressions"], kind=Suppression, query=query)

    async def get(self, suppression_id: str) -> Suppression:
        return read(Suppression, await self._transport.json(Call("GET", ["suppressions", suppression_id])))

    async def delete(self, suppression_id: str) -> Deleted:
        """Delete a suppression, so that emails to the address are sent again."""
        return read(Deleted, await self._transport.json(Call("DELETE", ["suppressions", suppression_id])))
