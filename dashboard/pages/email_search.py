"""Which emails a page of the list shows, in bounded time whatever is asked for (docs/decisions/0051)."""

from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from psycopg.errors import QueryCanceled

from analytics import counters
from dashboard.ui.listing import PER_PAGE, Listing, filters_of, listed, page_number
from emails.api.filters import filtered
from emails.models import Email
from emails.states import State

RECENT = 20_000
# Shorter ones have no trigram, and the index would be read from end to end.
SHORTEST_INDEXED = 3
ALL_MILLISECONDS = 200

# Rows of the newest that hold a text or a tag: of what is common the first page is full before the window ends.
WITHIN = """
SELECT id FROM ({newest}) newest
 WHERE (%s = '' OR strpos(search_text, %s) > 0) AND (%s = '' OR %s = ANY(tags))
OFFSET %s LIMIT %s
"""
# Materialized: else the planner walks the newest for a word that hardly any of them has.
AMONG_ALL = """
WITH found AS MATERIALIZED ({matching})
SELECT id FROM found ORDER BY created_at DESC, id DESC OFFSET %s LIMIT %s
"""


def find_emails(request: HttpRequest, emails: QuerySet[Email], *, filters: dict[str, Any]) -> Listing:
    """Return a page of a workspace's emails. filters: valid ones of emails.api.filters."""
    if not filters.get("search") and not filters.get("tag"):
        return listed(request, filtered(emails, filters))
    start = (page_number(request) - 1) * PER_PAGE
    ids, is_all = _among_newest(emails, filters, start=start), False
    if len(ids) <= PER_PAGE and len(filters.get("search", "")) >= SHORTEST_INDEXED:
        found = _among_all(filtered(emails, filters), start=start)
        ids, is_all = (ids, False) if found is None else (found, True)
    note = (
        "" if is_all or len(ids) > PER_PAGE else _("Looked through the newest %(count)s emails.") % {"count": "20,000"}
    )
    rows = list(emails.filter(id__in=ids[:PER_PAGE])) if ids else []
    return Listing(rows, page_number(request), len(ids) > PER_PAGE, filters_of(request), note=note)


def total_of(workspace_id: str, filters: dict[str, Any]) -> int | None:
    """Return how many emails there are, where the tallies know it: of all, or of some statuses."""
    if any(filters.get(name) for name in ("search", "tag", "from", "to")):
        return None
    return counters.total(workspace_id, keys=[f"status.{status}" for status in filters.get("status") or State.values])


def _among_newest(emails: QuerySet[Email], filters: dict[str, Any], *, start: int) -> list[Any]:
    rest = {name: value for name, value in filters.items() if name not in {"search", "tag"}}
    newest = filtered(emails, rest).values("id", "search_text", "tags")[:RECENT]
    sql, parameters = newest.query.sql_with_params()
    search, tag = filters.get("search", "").casefold(), filters.get("tag", "")
    return _ids(WITHIN.format(newest=sql), [*parameters, search, search, tag, tag, start, PER_PAGE + 1])


def _among_all(emails: QuerySet[Email], *, start: int) -> list[Any] | None:
    """Ask the index of all emails; None where that takes too long, as it does for what nearly all of them hold."""
    sql, parameters = emails.order_by().values("id", "created_at").query.sql_with_params()
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {ALL_MILLISECONDS}")
            return _ids(AMONG_ALL.format(matching=sql), [*parameters, start, PER_PAGE + 1])
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            return None
        raise


def _ids(sql: str, parameters: list[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [row_id for (row_id,) in cursor.fetchall()]
