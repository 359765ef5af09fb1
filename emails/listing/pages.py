"""Pages of matching emails, in bounded time for any number of emails and any filter (docs/decisions/0245).

The newest emails are compared in order, up to a number of them. If few of those match, the indexes of the filters are
read instead, within a time limit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import OperationalError, connection
from django.db.models import QuerySet
from psycopg.errors import QueryCanceled

from core.lib.email_addresses import normalize_search
from core.lib.sql import local_settings
from core.workspaces.key_limits import NO_LIMITS, KeyLimits
from emails.listing.filters import EmailFilters, filter_by_event, probe_events
from emails.listing.search import common_tags, has_trigrams
from emails.models import Email
from events.kinds import RARE_KINDS
from streams.models import MAIN

# A counted total above this is a lower bound.
MAX_COUNTED = 10_000
# Pages begin within this number of emails.
MAX_REACH = 100_000
# The emails of the sample.
SAMPLED = 2_000
# With fewer matches in the sample, the indexes are read first.
FREQUENT = 20

# A fourth of the entries that were read in a millisecond. PostgreSQL reads those of a tag without a pause, and notices
# its time limit only then.
TAG_ENTRIES_PER_MILLISECOND = 5_000

# The columns that filters and limits of keys compare.
COMPARED = (
    *("id", "workspace_id", "created_at", "status", "is_test", "from_domain", "stream", "template_id", "tags"),
    *("sender", "search_text", "approval_expires_at", "finished_at"),
)
PAGE = "ARRAY(SELECT id FROM found ORDER BY created_at DESC, id DESC OFFSET %s LIMIT %s)"
# In these two, the conditions of {matching} apply to the newest emails: the name of the table is theirs.
SAMPLE = f"""
WITH "emails_email" AS MATERIALIZED ({{newest}}), found AS MATERIALIZED ({{matching}})
SELECT (SELECT count(*) FROM found), {PAGE}, (SELECT count(*) FROM "emails_email")
"""  # noqa: S608 - the inner statements are the ORM's own
WALK = f"""
WITH "emails_email" AS ({{newest}}), found AS MATERIALIZED ({{matching}})
SELECT (SELECT count(*) FROM found), {PAGE}
"""  # noqa: S608
# Materialized: otherwise the planner walks the newest emails even for a rare match.
READ_INDEXES = f"""
WITH found AS MATERIALIZED ({{matching}})
SELECT (SELECT count(*) FROM found), {PAGE}
"""  # noqa: S608
INDEXES_ONLY = {"jit": "off", "enable_seqscan": "off"}
# The walk ends with the last email that is needed.
IN_ORDER = {
    **INDEXES_ONLY,
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}


@dataclass(frozen=True)
class Effort:
    """The limits of a search: emails that are compared in order, and time to read indexes.

    walked_for_events: with a filter of events, which takes five times as long per email.
    """

    walked: int
    walked_for_events: int
    index_milliseconds: int


PAGE_EFFORT = Effort(walked=30_000, walked_for_events=15_000, index_milliseconds=75)


@dataclass(frozen=True)
class EmailQuery:
    """Emails of a workspace by filters.

    matches: the emails that match all filters.
    matches_row_by_row: the same, with events that are looked up email by email.
    candidates: the emails that match the filters with an ordered index: a superset of the result, newest first.
    has_only_ordered_filters: all filters have that index, so that the candidates are the matches.
    has_unordered_index: another filter has an index, which is not ordered by time.
    tag_to_read: the tag whose index is read; None if another filter has an unordered index, too.
    has_event_filter: events are looked up.
    """

    matches: QuerySet[Email]
    matches_row_by_row: QuerySet[Email]
    candidates: QuerySet[Email]
    has_only_ordered_filters: bool
    has_unordered_index: bool
    tag_to_read: str | None
    has_event_filter: bool

    def walked(self, effort: Effort) -> int:
        """Return the number of emails that are compared in order."""
        return effort.walked_for_events if self.has_event_filter else effort.walked


@dataclass(frozen=True)
class Hits:
    """The ids of a page, or the query of them, and the number of matches that were found.

    is_exact: there are no others.
    searched_from: the time of the oldest email that was compared, if there may be older matches.
    """

    ids: list[UUID] | QuerySet[Any]
    count: int
    is_exact: bool = True
    searched_from: datetime | None = None


@dataclass(frozen=True)
class EmailPage:
    """A page of a list.

    total: the number of emails of all pages, or a lower bound unless is_exact. It is above the number of emails up to
    this page if there is a next page.
    continue_to: on the last page that can be read, the time at which the list of older emails ends, if they may match.
    """

    emails: list[Email]
    total: int
    is_exact: bool = True
    continue_to: datetime | None = None


def email_query(
    emails: QuerySet[Email],
    filters: Mapping[str, Any],
    *,
    workspace_id: str,
    limits: KeyLimits = NO_LIMITS,
    filterset: type[EmailFilters] = EmailFilters,
) -> EmailQuery:
    """Return the query of emails of a workspace.

    emails: those within the limits of the key that reads them.
    filters: the values of the filterset by name, without empty ones.
    """
    matches = emails
    for name in filters.keys() - {"event"}:
        matches = filterset.base_filters[name].filter(matches, filters[name])
    events = filters.get("event")
    ordered, others = _split(filters, limits)
    tag, has_index = others.get("tag"), _has_index(others, limits)
    return EmailQuery(
        matches=filter_by_event(matches, events) if events else matches,
        matches_row_by_row=probe_events(matches, events) if events else matches,
        candidates=Email.objects.filter(workspace=workspace_id, **ordered),
        has_only_ordered_filters=not others and not limits.restricts_emails,
        has_unordered_index=has_index or tag is not None,
        tag_to_read=None if has_index else tag,
        has_event_filter=bool(events),
    )


def read_page(query: EmailQuery, *, start: int, limit: int, total: int | None = None) -> EmailPage:
    """Return a page of the matches, newest first, from the position `start`.

    total: the number of matches according to the counters, if they have it.
    """
    hits = find_matches(query, start=start, limit=limit, is_counted=total is not None)
    emails = list(query.matches.filter(id__in=hits.ids))
    count = hits.count if total is None else total
    end = start + limit
    continue_to = hits.searched_from if hits.count <= end else None
    if end >= MAX_REACH and count > end and emails:
        continue_to = emails[-1].created_at
    return EmailPage(emails, count, hits.is_exact or total is not None, continue_to)


def find_matches(
    query: EmailQuery, *, start: int, limit: int, effort: Effort | None = None, is_counted: bool = False
) -> Hits:
    """Return a page of the ids of matches, newest first.

    effort: PAGE_EFFORT by default.
    is_counted: the total is known, and any count will do.
    """
    page, effort = (start, limit), effort or PAGE_EFFORT
    # The number of matches that shows whether there is a next page, and a total above MAX_COUNTED.
    needed = max(0 if is_counted else MAX_COUNTED, start + limit) + 1
    if query.has_only_ordered_filters:
        return _read_ordered(query, page, needed=0 if is_counted else needed)
    sample, is_whole = _sample(query, page)
    if is_whole:
        return sample
    is_rare = sample.count < FREQUENT
    from_indexes = _read_indexes(query, page, effort) if is_rare and query.has_unordered_index else None
    if from_indexes:
        return from_indexes
    hits = _walk(query, page, effort, needed=needed)
    if is_rare or not query.has_unordered_index or not hits.searched_from or len(hits.ids) == limit:
        return hits
    return _read_indexes(query, page, effort) or hits


def _read_ordered(query: EmailQuery, page: tuple[int, int], *, needed: int) -> Hits:
    start, limit = page
    ids = _newest_first(query.candidates).values_list("id", flat=True)[start : start + limit]
    count = query.candidates.order_by()[:needed].count() if needed else 0
    return Hits(ids, count, is_exact=count < needed)


def _sample(query: EmailQuery, page: tuple[int, int]) -> tuple[Hits, bool]:
    """Compare the newest emails only; return whether those are all."""
    newest, matching = _compared(query, SAMPLED), _found(query.matches_row_by_row)
    count, ids, sampled = _run(SAMPLE, page, newest=newest, matching=matching)
    return Hits(ids, count), sampled < SAMPLED


def _walk(query: EmailQuery, page: tuple[int, int], effort: Effort, *, needed: int) -> Hits:
    walked = query.walked(effort)
    matching = _found(_newest_first(query.matches_row_by_row))[:needed]
    with local_settings(IN_ORDER):
        count, ids = _run(WALK, page, newest=_compared(query, walked), matching=matching)
    if count >= needed:
        return Hits(ids, count, is_exact=False)
    oldest = _newest_first(query.candidates).values_list("created_at", flat=True)[walked - 1 : walked].first()
    return Hits(ids, count, is_exact=oldest is None, searched_from=oldest)


def _read_indexes(query: EmailQuery, page: tuple[int, int], effort: Effort) -> Hits | None:
    """Read all matches from the indexes; None if that takes too long."""
    if (
        query.tag_to_read
        and common_tags().get(query.tag_to_read, 0) > effort.index_milliseconds * TAG_ENTRIES_PER_MILLISECOND
    ):
        return None
    try:
        with local_settings({**INDEXES_ONLY, "statement_timeout": str(effort.index_milliseconds)}):
            count, ids = _run(READ_INDEXES, page, matching=_found(query.matches.order_by()))
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            return None
        raise
    return Hits(ids, count)


def _newest_first(emails: QuerySet[Email]) -> QuerySet[Email]:
    return emails.order_by("-created_at", "-id")


def _compared(query: EmailQuery, count: int) -> QuerySet[Any]:
    rows: QuerySet[Any] = _newest_first(query.candidates).values(*COMPARED)[:count]
    return rows


def _found(emails: QuerySet[Email]) -> QuerySet[Any]:
    return emails.values("id", "created_at")


def _run(sql: str, page: tuple[int, int], **parts: QuerySet[Any]) -> Any:
    """Return the row of a statement with the SQL of querysets, in the order of the text."""
    compiled = {name: part.query.sql_with_params() for name, part in parts.items()}
    parameters = [value for _, values in compiled.values() for value in values]
    with connection.cursor() as cursor:
        cursor.execute(sql.format(**{name: text for name, (text, _) in compiled.items()}), [*parameters, *page])
        return cursor.fetchone()


def _split(filters: Mapping[str, Any], limits: KeyLimits) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the conditions that the ordered indexes have, as arguments of filter(), and the other filters.

    The indexes are those of all emails, of a stream other than `main`, of a status, of test emails, and of those that
    wait for approval.
    """
    others = dict(filters)
    bounds = {"created_at__gte": others.pop("from", None), "created_at__lte": others.pop("to", None)}
    ordered: dict[str, Any] = {name: time for name, time in bounds.items() if time is not None}
    if limits.is_test:
        others["test"] = "true"
    if others.pop("held", None):
        # Few of them, so that the other filters need no index.
        return {**ordered, "approval_expires_at__isnull": False, "finished_at": None}, others
    streams = [others["stream"]] if "stream" in others else limits.streams
    if len(streams) == 1 and streams[0] != MAIN:
        ordered["stream"] = streams[0]
        others.pop("stream", None)
    elif len(others.get("status", ())) == 1:
        (ordered["status"],) = others.pop("status")
    elif others.get("test") == "true":
        ordered["is_test"] = True
        del others["test"]
    return ordered, others


def _has_index(filters: Mapping[str, Any], limits: KeyLimits) -> bool:
    """Return whether a filter other than a tag has an index."""
    return bool(
        {"template", "status"} & filters.keys()
        or limits.templates
        or has_trigrams(normalize_search(filters.get("search", "")))
        or ("event" in filters and set(filters["event"]) <= set(RARE_KINDS))
    )
