"""Email search for the dashboard's list, in bounded time for any filter (docs/decisions/0051, 0127, 0245)."""

from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from rest_framework import serializers

from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.pages.emails.display import rows_per_page
from console.dashboard.ui.listing import (
    PAGE_PARAMETER,
    ListPage,
    list_page,
    page_number,
    query_without_page,
    split_page,
)
from core.api.filters import FieldFilter
from core.lib.datetimes import format_datetime
from emails.listing import pages
from emails.listing.counts import COUNTED, LIVE_AND_TEST, counts_by_status
from emails.listing.filters import EmailFilters
from emails.listing.pages import MAX_COUNTED, EmailQuery, email_query, read_page
from emails.listing.search import filter_by_id
from emails.models import Email

# The newest emails, whose tags are suggested.
SUGGESTED_FROM = 500
SUGGESTED_TAGS = "SELECT DISTINCT unnest(tags) FROM ({newest}) newest ORDER BY 1 LIMIT 100"


class SenderFilter(FieldFilter):
    """A literal, case-insensitive substring of the From address or its name."""

    def filter(self, qs: QuerySet[Email], value: Any) -> QuerySet[Email]:
        return qs.filter(sender__icontains=value) if value else qs


class EmailListFilters(EmailFilters):
    """The filters of the API's list, and two that only the dashboard has."""

    template = FieldFilter(serializers.CharField(allow_blank=True, max_length=26), "template_id")
    sender = SenderFilter(serializers.CharField(allow_blank=True, max_length=200))


def find_emails(
    request: HttpRequest, emails: QuerySet[Email], query: EmailQuery, *, filters: dict[str, Any]
) -> ListPage:
    """Return a page of a workspace's emails. query: the list_query of the filters."""
    if named := list(filter_by_id(emails, filters.get("search", ""))):
        return ListPage(named, 1, has_next=False, query=query_without_page(request), total=len(named))
    per_page = rows_per_page(request)
    if query.has_only_ordered_filters:
        return list_page(request, query.matches, per_page=per_page)
    number, text = page_number(request, per_page=per_page), query_without_page(request)
    page = read_page(query, start=(number - 1) * per_page, limit=per_page + 2)
    shown, has_next = split_page(page.emails, per_page=per_page)
    note = older = ""
    if page.continue_to and not has_next:
        note = _("Searched the newest %(count)s emails only.") % {"count": _grouped(query.walked(pages.PAGE_EFFORT))}
        older = _query_until(request, format_datetime(page.continue_to))
    return ListPage(
        shown, number, has_next, text, note, older, total=page.total, is_exact=page.is_exact, per_page=per_page
    )


def list_query(request: HttpRequest, emails: QuerySet[Email], *, filters: dict[str, Any]) -> EmailQuery:
    """Return the query of the list and of the export. filters: the values of a valid EmailListFilters."""
    return email_query(emails, filters, workspace_id=current_workspace(request).id, filterset=EmailListFilters)


def count_label(listing: ListPage, query: EmailQuery, *, statuses: dict[str, int], filters: dict[str, Any]) -> str:
    """Return the number of emails as text: of a search, of the counters, or counted up to MAX_COUNTED.

    statuses: the result of count_statuses.
    """
    if listing.total is not None:
        return _count_text(listing.total, is_exact=listing.is_exact)
    if statuses:
        return _count_text(sum(statuses[status] for status in filters.get("status") or [""]))
    counted = query.matches.order_by()[: MAX_COUNTED + 1].count()
    return _count_text(counted, is_exact=counted <= MAX_COUNTED)


def count_statuses(workspace_id: str, filters: dict[str, Any]) -> dict[str, int]:
    """Return the number of emails by status, and of all as "", from the counters.

    Empty with filters that the counters do not know.
    """
    if filters.keys() - COUNTED:
        return {}
    tests = [filters["test"] == "true"] if "test" in filters else LIVE_AND_TEST
    counts = counts_by_status(workspace_id, tests=tests)
    return {"": sum(counts.values()), **counts}


def suggest_tags(emails: QuerySet[Email]) -> list[str]:
    """Return the tags of the newest emails, in alphabetical order."""
    sql, parameters = emails.values("tags")[:SUGGESTED_FROM].query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(SUGGESTED_TAGS.format(newest=sql), parameters)
        return [tag for (tag,) in cursor.fetchall()]


def _query_until(request: HttpRequest, time: str) -> str:
    """Return the query string of the emails until a time."""
    query = request.GET.copy()
    query.pop(PAGE_PARAMETER, None)
    query["to"] = time
    return query.urlencode()


def _count_text(count: int, *, is_exact: bool = True) -> str:
    if is_exact:
        return ngettext("%(shown)s email", "%(shown)s emails", count) % {"shown": _grouped(count)}
    if count > MAX_COUNTED:
        return _("More than %(count)s emails") % {"count": _grouped(MAX_COUNTED)}
    return ngettext("At least %(shown)s email", "At least %(shown)s emails", count) % {"shown": _grouped(count)}


def _grouped(number: int) -> str:
    return number_format(number, force_grouping=True)
