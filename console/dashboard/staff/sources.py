"""Page of the staff admin about sending addresses: block lists and reverse names (docs/decisions/0349)."""

from dataclasses import dataclass
from datetime import date
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from emails.models import SourceListing, WatchedSource
from emails.sources.own_addresses import new_addresses, watched_addresses, watched_lists

# Rows of each table: those with a listing first.
MAX_ROWS = 200


@dataclass(frozen=True)
class SourceRow:
    """A sending address.

    since: its first day, if it is new.
    source: None until the first lookup.
    """

    address: str
    transports: str
    since: date | None
    source: WatchedSource | None


def sources_page(request: HttpRequest, context: dict[str, Any]) -> TemplateResponse:
    """Show the sending addresses and what block lists say about them. context: that of each page of the site."""
    rows, listings = source_rows(), listing_rows()
    page = {
        **context,
        "title": _("Sending addresses"),
        "rows": rows[:MAX_ROWS],
        "listings": listings[:MAX_ROWS],
        "hidden": max(len(rows) - MAX_ROWS, 0) + max(len(listings) - MAX_ROWS, 0),
        "is_off": not settings.BLOCKLISTS,
    }
    return TemplateResponse(request, "dashboard/staff/sources.html", page)


def source_rows() -> list[SourceRow]:
    """Return all watched addresses of the settings, in their order."""
    addresses = watched_addresses()
    sources = WatchedSource.objects.filter(address__in=map(str, addresses))
    known = {ip_address(source.address): source for source in sources}
    days = new_addresses()
    return [
        SourceRow(str(address), ", ".join(names), days.get(address), known.get(address))
        for address, names in addresses.items()
    ]


def listing_rows() -> list[SourceListing]:
    """Return the answers of all block lists, listings first."""
    answers = SourceListing.objects.of([*map(str, watched_addresses())], lists=watched_lists())
    return sorted(answers, key=lambda listing: listing.listed_at is None)


def count_listed() -> int:
    """Return the number of listings of own addresses."""
    return SourceListing.objects.of([*map(str, watched_addresses())], lists=watched_lists()).listed().count()
