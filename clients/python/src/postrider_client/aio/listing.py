"""Paginated lists."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Generic

from postrider_client.aio.transport import AsyncTransport
from postrider_client.listing import Page, T, _identity
from postrider_client.transport import Call
from postrider_client.wire import read


class AsyncListing(Generic[T]):
    """A list of all items when iterated; `fetch()` returns the requested page.

    Pages are requested one after the other, and older ones with `continue_to`. An item that moves to the next page
    because a newer item was added is not repeated.
    """

    def __init__(
        self, transport: AsyncTransport, path: Sequence[str], *, kind: type[T], query: Mapping[str, Any]
    ) -> None:
        self._transport = transport
        self._path = path
        self._kind = kind
        self._query = query

    async def fetch(self) -> Page[T]:
        return await self._page({})

    async def __aiter__(self) -> AsyncGenerator[T, None]:
        page = await self.fetch()
        query: dict[str, Any] = {}
        earlier: set[Any] = set()
        known: set[Any] = set()
        while page.data or page.continue_to:
            for item in (item for item in page.data if _identity(item) not in known and _identity(item) not in earlier):
                yield item
            known.update(map(_identity, page.data))
            if page.continue_to and page.continue_to != query.get("to"):
                query, earlier, known = ({"to": page.continue_to, "page": 1}, known, set())
            elif page.page * page.limit >= page.total:
                return
            else:
                query = {**query, "page": page.page + 1}
            page = await self._page(query)

    async def _page(self, changes: Mapping[str, Any]) -> Page[T]:
        answer = await self._transport.json(Call("GET", self._path, query={**self._query, **changes}))
        items = [read(self._kind, item) for item in answer["data"]]
        is_exact, continue_to = (answer.get("totalIsExact", True), answer.get("continueTo"))
        return Page(items, answer["total"], answer["page"], answer["limit"], is_exact, continue_to)
