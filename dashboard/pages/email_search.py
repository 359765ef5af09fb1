"""Email search for the dashboard's list, in bounded time for any filter (docs/decisions/0051)."""

from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from psycopg.errors import QueryCanceled

from analytics import counters
from dashboard.ui.listing import PER_PAGE, ListPage, list_page, page_number, query_without_page
from emails.api.filters import apply_filters
from emails.models import Email
from emails.states import EmailStatus
from lib.email_addresses import normalize_search

NEWEST_EMAILS = 20_000
# Shorter texts have no trigram: the whole index would be scanned.
MIN_INDEXED_LENGTH = 3
SEARCH_ALL_MILLISECONDS = 200

# Matches among the newest emails: a common text fills the first page before the window ends.
SEARCH_NEWEST = """
SELECT id FROM ({newest}) newest
 WHERE (%s = '' OR strpos(search_text, %s) > 0) AND (%s = '' OR %s = ANY(tags))
OFFSET %s LIMIT %s
"""
# Materialized: otherwise the planner walks the newest rows even for a rare word.
SEARCH_ALL = """
WITH found AS MATERIALIZED ({matching})
SELECT id FROM found ORDER BY created_at DESC, id DESC OFFSET %s LIMIT %s
"""


def find_emails(request: HttpRequest, emails: QuerySet[Email], *, filters: dict[str, Any]) -> ListPage:
    """Return a page of a workspace's emails. filters: validated by emails.api.filters."""
    if not filters.get("search") and not filters.get("tag"):
        return list_page(request, apply_filters(emails, filters))
    start = (page_number(request) - 1) * PER_PAGE
    ids, searched_all = _search_newest(emails, filters, start=start), False
    if len(ids) <= PER_PAGE and len(filters.get("search", "")) >= MIN_INDEXED_LENGTH:
        matches = _search_all(apply_filters(emails, filters), start=start)
        ids, searched_all = (ids, False) if matches is None else (matches, True)
    note = ""
    if not searched_all and len(ids) <= PER_PAGE:
        note = _("Only the newest %(count)s emails were searched.") % {"count": "20,000"}
    rows = list(emails.filter(id__in=ids[:PER_PAGE])) if ids else []
    return ListPage(rows, page_number(request), len(ids) > PER_PAGE, query_without_page(request), note=note)


def count_emails(workspace_id: str, filters: dict[str, Any]) -> int | None:
    """Return the number of emails from the counters: of all, or of some statuses. None with other filters."""
    if any(filters.get(name) for name in ("search", "tag", "from", "to")):
        return None
    return counters.total(
        workspace_id, keys=[f"status.{status}" for status in filters.get("status") or EmailStatus.values]
    )


def _search_newest(emails: QuerySet[Email], filters: dict[str, Any], *, start: int) -> list[Any]:
    other_filters = {name: value for name, value in filters.items() if name not in {"search", "tag"}}
    newest = apply_filters(emails, other_filters).values("id", "search_text", "tags")[:NEWEST_EMAILS]
    sql, parameters = newest.query.sql_with_params()
    search, tag = normalize_search(filters.get("search", "")), filters.get("tag", "")
    return _ids(SEARCH_NEWEST.format(newest=sql), [*parameters, search, search, tag, tag, start, PER_PAGE + 1])


def _search_all(emails: QuerySet[Email], *, start: int) -> list[Any] | None:
    """Search the index of all emails; None if it takes too long, as for a text that nearly all of them contain."""
    sql, parameters = emails.order_by().values("id", "created_at").query.sql_with_params()
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {SEARCH_ALL_MILLISECONDS}")
            return _ids(SEARCH_ALL.format(matching=sql), [*parameters, start, PER_PAGE + 1])
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            return None
        raise


def _ids(sql: str, parameters: list[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [row_id for (row_id,) in cursor.fetchall()]
