"""The CSV export: streamed in keyset pages, so that neither memory nor a snapshot grows with it."""

import csv
import itertools
import json
from collections.abc import Iterator
from typing import Any

from django.db.models import Q, QuerySet

from api.fields import wire_time
from emails.models import Email

MAX_ROWS = 10_000
PAGE_ROWS = 500
# What a spreadsheet takes for a formula, the full-width forms included (OWASP, CSV injection).
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001
COLUMNS = (
    "id", "to", "cc", "bcc", "from", "replyTo", "subject", "status", "tags", "createdAt", "scheduledFor", "sentAt",
    "deliveredAt", "errorMessage", "retryCount", "metadata",
)  # fmt: skip


class _Line:
    """What csv writes to: hands each line back instead of keeping it."""

    def write(self, line: str) -> str:
        return line


def is_truncated(emails: QuerySet[Email]) -> bool:
    """Tell whether there are more emails than an export has rows."""
    return emails[MAX_ROWS : MAX_ROWS + 1].exists()


def csv_lines(emails: QuerySet[Email]) -> Iterator[str]:
    """Write the newest emails, at most MAX_ROWS, one line each behind a line of names."""
    writer = csv.writer(_Line())
    yield writer.writerow(COLUMNS)
    for email in itertools.islice(_newest_first(emails), MAX_ROWS):
        yield writer.writerow([safe_cell(value) for value in _row(email)])


def safe_cell(value: str) -> str:
    """Put an apostrophe before what a spreadsheet would run."""
    return f"'{value}" if value.startswith(FORMULA) else value


def _newest_first(emails: QuerySet[Email]) -> Iterator[Email]:
    page = list(emails[:PAGE_ROWS])
    while page:
        yield from page
        last = page[-1]
        older = Q(created_at__lt=last.created_at) | Q(created_at=last.created_at, id__lt=last.id)
        page = list(emails.filter(older, created_at__lte=last.created_at)[:PAGE_ROWS])


def _row(email: Email) -> list[str]:
    moments = (email.created_at, email.scheduled_for, email.sent_at, email.delivered_at)
    created_at, scheduled_for, sent_at, delivered_at = (wire_time(moment) if moment else "" for moment in moments)
    metadata = "" if email.metadata is None else json.dumps(email.metadata, ensure_ascii=False)
    values: list[Any] = [
        email.id, email.addressees, ", ".join(email.cc), ", ".join(email.bcc), email.sender, email.reply_to or "",
        email.subject, email.status, ", ".join(email.tags), created_at, scheduled_for, sent_at, delivered_at,
        email.error_message or "", email.retry_count, metadata,
    ]  # fmt: skip
    return [str(value) for value in values]
