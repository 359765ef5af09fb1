"""Paginated lists."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Optional, TypeVar

from postrider_client.transport import Call, Transport
from postrider_client.wire import read

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list.

    total_is_exact: False if there are more items than `total`, or may be.
    continue_to: the time that continues the list as its filter `to`, from page 1; only on the last page that page
    numbers reach.
    """

    data: list[T]
    total: int
    page: int
    limit: int
    total_is_exact: bool = True
    continue_to: Optional[str] = None


class Listing(Generic[T]):
    """A list of all items when iterated; `fetch()` returns the requested page.

    Pages are requested one after the other, and older ones with `continue_to`. An item that moves to the next page
    because a newer item was added is not repeated.
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
        query: dict[str, Any] = {}
        # Items of the pages before continue_to, and of those since.
        earlier: set[Any] = set()
        known: set[Any] = set()
        while page.data or page.continue_to:
            yield from (item for item in page.data if _identity(item) not in known and _identity(item) not in earlier)
            known.update(map(_identity, page.data))
            if page.continue_to and page.continue_to != query.get("to"):
                query, earlier, known = {"to": page.continue_to, "page": 1}, known, set()
            elif page.page * page.limit >= page.total:
                return
            else:
                query = {**query, "page": page.page + 1}
            page = self._page(query)

    def _page(self, changes: Mapping[str, Any]) -> Page[T]:
        answer = self._transport.json(Call("GET", self._path, query={**self._query, **changes}))
        items = [read(self._kind, item) for item in answer["data"]]
        is_exact, continue_to = answer.get("totalIsExact", True), answer.get("continueTo")
        return Page(items, answer["total"], answer["page"], answer["limit"], is_exact, continue_to)


def _identity(item: Any) -> Any:
    """Return the id of an item. Members and audit entries have none and are compared as a whole."""
    return getattr(item, "id", item)
