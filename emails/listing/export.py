"""CSV export of emails, streamed in keyset pages: constant memory, and no long snapshot (docs/decisions/0016)."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

from django.db.models import Q, QuerySet

from emails.listing.csv_lines import csv_lines
from emails.models import Email
from lib.datetimes import format_datetime

MAX_ROWS = 10_000
PAGE_ROWS = 500
COLUMNS = (
    "id", "to", "cc", "bcc", "from", "replyTo", "subject", "status", "tags", "createdAt", "scheduledFor", "sentAt",
    "deliveredAt", "errorMessage", "retryCount", "metadata", "stream",
)  # fmt: skip


def is_truncated(emails: QuerySet[Email]) -> bool:
    """Return whether there are more than MAX_ROWS emails."""
    return emails[MAX_ROWS : MAX_ROWS + 1].exists()


def export_lines(emails: QuerySet[Email]) -> Iterator[str]:
    """Yield a header line and one line per email, newest first, at most MAX_ROWS."""
    return csv_lines(COLUMNS, map(_row, itertools.islice(_newest_first(emails), MAX_ROWS)))


def _newest_first(emails: QuerySet[Email]) -> Iterator[Email]:
    page = list(emails[:PAGE_ROWS])
    while page:
        yield from page
        last = page[-1]
        older = Q(created_at__lt=last.created_at) | Q(created_at=last.created_at, id__lt=last.id)
        page = list(emails.filter(older, created_at__lte=last.created_at)[:PAGE_ROWS])


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
