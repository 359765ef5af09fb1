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

    note: the limits of a search, shown to the user. older: the query string that continues it, if it ended early.
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

    @property
    def is_last_shown(self) -> bool:
        return self.has_next and self.number == MAX_PAGES


def page_number(request: HttpRequest) -> int:
    """Return the requested page number, from 1; 1 if it is missing or invalid."""
    raw = request.GET.get(PAGE_PARAMETER, "1")
    number = int(raw) if raw.isascii() and raw.isdigit() and len(raw) <= 4 else 1
    return min(max(number, 1), MAX_PAGES)


def list_page(request: HttpRequest, rows: QuerySet[Any]) -> ListPage:
    """Read one page, plus one row to detect whether another follows. rows: ordered along an index."""
    number = page_number(request)
    start = (number - 1) * PER_PAGE
    window = list(rows[start : start + PER_PAGE + 1])
    return ListPage(window[:PER_PAGE], number, len(window) > PER_PAGE, query_without_page(request))


def query_without_page(request: HttpRequest) -> str:
    """Return the query string without the page number, for the links to other pages."""
    query = request.GET.copy()
    query.pop(PAGE_PARAMETER, None)
    text = query.urlencode()
    return f"{text}&" if text else ""
