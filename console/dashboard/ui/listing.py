"""Pagination for lists of any size: rows are not counted, and pages end at MAX_PAGES."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

PER_PAGE = 25
# An offset reads the rows that it skips. Filters and the API reach older rows.
MAX_PAGES = 200
PAGE_PARAMETER = "p"


@dataclass(frozen=True)
class ListPage:
    """One page of a list.

    note: the limits of a search, shown to the user.
    older: the query string that continues it, if it ended early.
    total: the number of hits, if known; a lower bound unless is_exact.
    """

    rows: list[Any]
    number: int
    has_next: bool
    query: str = ""
    note: str = ""
    older: str = ""
    total: int | None = None
    is_exact: bool = True
    per_page: int = PER_PAGE

    @property
    def is_last_shown(self) -> bool:
        return self.has_next and self.number >= last_page(self.per_page)


def last_page(per_page: int) -> int:
    """Return the number of the last page: lists of longer pages end at the same row."""
    return MAX_PAGES * PER_PAGE // per_page


def page_number(request: HttpRequest, *, per_page: int = PER_PAGE) -> int:
    """Return the requested page number, from 1; 1 if it is missing or invalid."""
    raw = request.GET.get(PAGE_PARAMETER, "1")
    number = int(raw) if raw.isascii() and raw.isdigit() and len(raw) <= 4 else 1
    return min(max(number, 1), last_page(per_page))


def list_page(request: HttpRequest, rows: QuerySet[Any], *, per_page: int = PER_PAGE) -> ListPage:
    """Read one page, plus two rows to detect whether another follows. rows: ordered along an index."""
    number = page_number(request, per_page=per_page)
    start = (number - 1) * per_page
    shown, has_next = split_page(list(rows[start : start + per_page + 2]), per_page=per_page)
    return ListPage(shown, number, has_next, query_without_page(request), per_page=per_page)


def split_page(window: list[Any], *, per_page: int = PER_PAGE) -> tuple[list[Any], bool]:
    """Return the rows of a page, and whether another follows.

    A last page would not have a single row: the page before it has one more (docs/decisions/0268).

    window: the rows from the start of the page, at least per_page + 2 if there are so many.
    """
    has_next = len(window) > per_page + 1
    return (window[:per_page] if has_next else window), has_next


def query_without_page(request: HttpRequest) -> str:
    """Return the query string without the page number, for the links to other pages."""
    query = request.GET.copy()
    query.pop(PAGE_PARAMETER, None)
    text = query.urlencode()
    return f"{text}&" if text else ""
