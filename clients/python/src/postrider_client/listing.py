"""Paginated lists."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from postrider_client.transport import Call, Transport
from postrider_client.wire import read

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    data: list[T]
    total: int
    page: int
    limit: int


class Listing(Generic[T]):
    """A list of all items when iterated; `fetch()` returns the requested page.

    Pages are requested one after the other. An item that moves to the next page because a newer item was added is not
    repeated.
    """

    def __init__(self, transport: Transport, path: Sequence[str], *, kind: type[T], query: Mapping[str, Any]) -> None:
        self._transport = transport
        self._path = path
        self._kind = kind
        self._query = query

    def fetch(self) -> Page[T]:
        return self._page({})

    def __iter__(self) -> Iterator[T]:
        page = self.fetch()
        known: set[Any] = set()
        while page.data:
            yield from (item for item in page.data if _identity(item) not in known)
            if page.page * page.limit >= page.total:
                return
            known = set(map(_identity, page.data))
            page = self._page({"page": page.page + 1})

    def _page(self, changes: Mapping[str, Any]) -> Page[T]:
        answer = self._transport.json(Call("GET", self._path, query={**self._query, **changes}))
        items = [read(self._kind, item) for item in answer["data"]]
        return Page(items, answer["total"], answer["page"], answer["limit"])


def _identity(item: Any) -> Any:
    """Return the id of an item. Members and audit entries have none and are compared as a whole."""
    return getattr(item, "id", item)
