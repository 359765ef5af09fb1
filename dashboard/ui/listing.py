"""Pages of a list that may have millions of rows: none is counted, and none lies deeper than MAX_PAGES."""

from dataclasses import dataclass
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.db.models import QuerySet
from django.http import HttpRequest

PER_PAGE = 25
# An offset reads what it leaves out. Who looks further back filters, or asks the API.
MAX_PAGES = 200
PAGE = "p"


@dataclass(frozen=True)
class Listing:
    """One page of a list. total: how many rows there are, where a counter knows; note: what was not looked at."""

    rows: list[Any]
    number: int
    has_next: bool
    query: str = ""
    total: int | None = None
    note: str = ""

    @property
    def is_last_shown(self) -> bool:
        return self.has_next and self.number == MAX_PAGES


def page_number(request: HttpRequest) -> int:
    """Return the page asked for, from 1; 1 for what is none."""
    raw = request.GET.get(PAGE, "1")
    number = int(raw) if raw.isascii() and raw.isdigit() and len(raw) <= 4 else 1
    return min(max(number, 1), MAX_PAGES)


def listed(request: HttpRequest, rows: QuerySet[Any], **facts: Any) -> Listing:
    """Cut a page, and one row more to know whether another follows. rows: ordered, along an index."""
    number = page_number(request)
    start = (number - 1) * PER_PAGE
    found = list(rows[start : start + PER_PAGE + 1])
    return Listing(found[:PER_PAGE], number, len(found) > PER_PAGE, filters_of(request), **facts)


def filters_of(request: HttpRequest) -> str:
    """Return the query of a page without its number, for the links to other pages."""
    kept = request.GET.copy()
    kept.pop(PAGE, None)
    text = kept.urlencode()
    return f"{text}&" if text else ""


def refuse_unknown(request: HttpRequest, known: set[str]) -> None:
    """Raise SuspiciousOperation, which answers 400, for a parameter that the page does not know."""
    unknown = set(request.GET) - known - {PAGE}
    if unknown:
        raise SuspiciousOperation(f"unknown parameter {min(unknown)[:40]!r}")
