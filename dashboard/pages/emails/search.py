"""Email search for the dashboard's list, in bounded time for any filter (docs/decisions/0051, 0127)."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import OperationalError, connection, transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from psycopg.errors import QueryCanceled
from rest_framework import serializers

from api.filters import FieldFilter
from counters import counters
from dashboard.pages.emails.display import rows_per_page
from dashboard.ui.listing import ListPage, list_page, page_number, query_without_page
from emails.listing.filters import EmailFilters
from emails.listing.search import filter_by_id
from emails.models import Email
from emails.states import EmailStatus
from lib.email_addresses import normalize_search

NEWEST_EMAILS = 20_000
# Shorter texts have no trigram: the whole index would be scanned.
MIN_INDEXED_LENGTH = 3
SEARCH_ALL_MILLISECONDS = 200
# Emails of a date range are counted up to this number.
MAX_COUNTED = 10_000
SUGGESTED_FROM = 500

# Filters that the indexes of the list do not answer. Together with the newest emails they take bounded time.
CONDITIONS = {
    "search": "strpos(search_text, %s) > 0",
    "tag": "%s = ANY(tags)",
    "stream": "stream = %s",
    "template": "template_id = %s",
    "sender": "strpos(lower(sender), lower(%s)) > 0",
    "event": "EXISTS (SELECT FROM emails_event e WHERE e.email_id = newest.id AND e.kind = ANY(%s))",
}
SEARCHED_COLUMNS = ("id", "search_text", "tags", "stream", "template_id", "sender")
SEARCH_NEWEST = """
WITH searched AS MATERIALIZED (SELECT id, {conditions} AS is_hit FROM ({newest}) newest)
SELECT (SELECT count(*) FROM searched), (SELECT count(*) FROM searched WHERE is_hit),
       ARRAY(SELECT id FROM searched WHERE is_hit OFFSET %s LIMIT %s)
"""
# Materialized: otherwise the planner walks the newest rows even for a rare word.
SEARCH_ALL = """
WITH found AS MATERIALIZED ({matching})
SELECT (SELECT count(*) FROM found), ARRAY(SELECT id FROM found ORDER BY created_at DESC, id DESC OFFSET %s LIMIT %s)
"""
SUGGESTED_TAGS = "SELECT DISTINCT unnest(tags) FROM ({newest}) newest ORDER BY 1 LIMIT 100"


class SenderFilter(FieldFilter):
    """A literal, case-insensitive substring of the From address or its name."""

    def filter(self, qs: QuerySet[Email], value: Any) -> QuerySet[Email]:
        return qs.filter(sender__icontains=value) if value else qs


class EmailListFilters(EmailFilters):
    """The filters of the API's list, and two that only the dashboard has."""

    template = FieldFilter(serializers.CharField(allow_blank=True, max_length=26), "template_id")
    sender = SenderFilter(serializers.CharField(allow_blank=True, max_length=200))


@dataclass(frozen=True)
class SearchHits:
    """One page of matching ids and the number of all matches; is_complete: all emails were searched."""

    ids: list[UUID]
    total: int
    is_complete: bool


def find_emails(request: HttpRequest, emails: QuerySet[Email], *, filters: dict[str, Any]) -> ListPage:
    """Return a page of a workspace's emails. filters: the values of a valid EmailListFilters."""
    per_page = rows_per_page(request)
    if not CONDITIONS.keys() & filters.keys():
        return list_page(request, _matching(emails, filters), per_page=per_page)
    if named := list(filter_by_id(emails, filters.get("search", ""))):
        return ListPage(named, 1, has_next=False, query=query_without_page(request), total=len(named))
    number = page_number(request, per_page=per_page)
    bounds = slice((number - 1) * per_page, number * per_page + 1)
    hits = _search_newest(emails, filters, bounds=bounds)
    if not hits.is_complete and len(hits.ids) <= per_page and _has_index(filters):
        hits = _search_all(_matching(emails, filters), bounds=bounds) or hits
    rows = list(emails.filter(id__in=hits.ids[:per_page])) if hits.ids else []
    note = (
        ""
        if hits.is_complete
        else _("Only the newest %(count)s emails were searched.")
        % {"count": number_format(NEWEST_EMAILS, force_grouping=True)}
    )
    query, has_next = query_without_page(request), len(hits.ids) > per_page
    return ListPage(rows, number, has_next, query, note=note, total=hits.total, per_page=per_page)


def count_label(
    listing: ListPage, emails: QuerySet[Email], *, statuses: dict[str, int], filters: dict[str, Any]
) -> str:
    """Return the number of emails as text: of a search, of the counters, or counted up to MAX_COUNTED.

    statuses: of count_statuses.
    """
    if listing.total is not None:
        return _count_text(listing.total)
    if statuses:
        return _count_text(sum(statuses[status] for status in filters.get("status") or [""]))
    counted = _matching(emails, filters).order_by()[: MAX_COUNTED + 1].count()
    if counted > MAX_COUNTED:
        return _("More than %(count)s emails") % {"count": _grouped(MAX_COUNTED)}
    return _count_text(counted)


def count_statuses(workspace_id: str, filters: dict[str, Any]) -> dict[str, int]:
    """Return the number of emails by status, and of all as "", from the counters.

    Empty with filters that the counters do not know.
    """
    if filters.keys() - {"status", "test"}:
        return {}
    tests = [filters["test"] == "true"] if "test" in filters else [False, True]
    keys = {
        counters.counter_key(f"status.{status}", is_test=is_test): status
        for status in EmailStatus.values
        for is_test in tests
    }
    counts = dict.fromkeys(["", *EmailStatus.values], 0)
    for key, count in counters.totals(workspace_id, keys=keys).items():
        counts[keys[key]] += count
        counts[""] += count
    return counts


def suggest_tags(emails: QuerySet[Email]) -> list[str]:
    """Return the tags of the newest emails, in alphabetical order."""
    sql, parameters = emails.values("tags")[:SUGGESTED_FROM].query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(SUGGESTED_TAGS.format(newest=sql), parameters)
        return [tag for (tag,) in cursor.fetchall()]


def _count_text(count: int) -> str:
    return ngettext("%(shown)s email", "%(shown)s emails", count) % {"shown": _grouped(count)}


def _grouped(number: int) -> str:
    return number_format(number, force_grouping=True)


def _matching(emails: QuerySet[Email], filters: dict[str, Any]) -> QuerySet[Email]:
    for name, value in filters.items():
        emails = EmailListFilters.base_filters[name].filter(emails, value)
    return emails


def _has_index(filters: dict[str, Any]) -> bool:
    return "event" in filters or len(filters.get("search", "")) >= MIN_INDEXED_LENGTH


def _search_newest(emails: QuerySet[Email], filters: dict[str, Any], *, bounds: slice) -> SearchHits:
    indexed = {name: value for name, value in filters.items() if name not in CONDITIONS}
    searched = {name: value for name, value in filters.items() if name in CONDITIONS}
    if "search" in searched:
        searched["search"] = normalize_search(searched["search"])
    newest, parameters = _matching(emails, indexed).values(*SEARCHED_COLUMNS)[:NEWEST_EMAILS].query.sql_with_params()
    sql = SEARCH_NEWEST.format(newest=newest, conditions=" AND ".join(CONDITIONS[name] for name in searched))
    with connection.cursor() as cursor:
        cursor.execute(sql, [*searched.values(), *parameters, bounds.start, bounds.stop - bounds.start])
        searched_count, total, ids = cursor.fetchone()
    return SearchHits(ids, total, is_complete=searched_count < NEWEST_EMAILS)


def _search_all(emails: QuerySet[Email], *, bounds: slice) -> SearchHits | None:
    """Search the indexes of all emails; None if it takes too long, as for a text that nearly all of them contain."""
    sql, parameters = emails.order_by().values("id", "created_at").query.sql_with_params()
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {SEARCH_ALL_MILLISECONDS}")
            cursor.execute(SEARCH_ALL.format(matching=sql), [*parameters, bounds.start, bounds.stop - bounds.start])
            total, ids = cursor.fetchone()
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            return None
        raise
    return SearchHits(ids, total, is_complete=True)
