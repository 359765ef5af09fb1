"""CSV export of emails: ids first, then rows in pages, without a long snapshot (docs/decisions/0016, 0245)."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from core.lib.datetimes import format_datetime
from emails.listing.csv_lines import csv_lines
from emails.listing.pages import Effort, EmailQuery, find_matches
from emails.models import Email

MAX_ROWS = 10_000
PAGE_ROWS = 500
COLUMNS = (
    "id", "to", "cc", "bcc", "from", "replyTo", "subject", "status", "tags", "createdAt", "scheduledFor", "sentAt",
    "deliveredAt", "errorMessage", "retryCount", "metadata", "stream",
)  # fmt: skip


# Nobody waits for a page, and a file should be complete.
EFFORT = Effort(walked=250_000, walked_for_events=100_000, index_milliseconds=5_000)


@dataclass(frozen=True)
class EmailExport:
    """The ids of the newest MAX_ROWS matches, newest first.

    is_truncated: there are more, or there may be.
    """

    ids: Sequence[UUID]
    is_truncated: bool


def find_export(query: EmailQuery) -> EmailExport:
    """Return the emails to export."""
    hits = find_matches(query, start=0, limit=MAX_ROWS + 1, effort=EFFORT, is_counted=True)
    ids = list(hits.ids)
    return EmailExport(ids[:MAX_ROWS], is_truncated=len(ids) > MAX_ROWS or hits.searched_from is not None)


def export_lines(emails: QuerySet[Email], ids: Sequence[UUID | str]) -> Iterator[str]:
    """Yield a header line and one line per email of a workspace, in the order of the ids."""
    return csv_lines(COLUMNS, map(_row, _in_order(emails, ids)))


def _in_order(emails: QuerySet[Email], ids: Sequence[UUID | str]) -> Iterator[Email]:
    for start in range(0, len(ids), PAGE_ROWS):
        yield from emails.filter(id__in=ids[start : start + PAGE_ROWS]).order_by("-created_at", "-id")


def _row(email: Email) -> list[str]:
    times = (email.created_at, email.scheduled_for, email.sent_at, email.delivered_at)
    created_at, scheduled_for, sent_at, delivered_at = (format_datetime(time) if time else "" for time in times)
    metadata = "" if email.metadata is None else json.dumps(email.metadata, ensure_ascii=False)
    values: list[Any] = [
        email.id, email.addressees, ", ".join(email.cc), ", ".join(email.bcc), email.sender, email.reply_to or "",
        email.subject, email.status, ", ".join(email.tags), created_at, scheduled_for, sent_at, delivered_at,
        email.error_message or "", email.retry_count, metadata, email.stream,
    ]  # fmt: skip
    return [str(value) for value in values]
