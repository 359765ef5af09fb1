"""Filters of the email list and the export (docs/specification.md, Lists and export)."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from api.fields import DateTimeBoundField, DateTimeRangeQuery
from emails.api.search import filter_by_text
from emails.models import Email
from emails.states import EmailStatus

MAX_SEARCH_LENGTH = 200


class StatusesField(serializers.CharField):
    """Statuses separated by commas."""

    default_error_messages = {
        "unknown": "Unknown status {status!r}. Use one of: " + ", ".join(EmailStatus.values) + "."
    }

    def to_internal_value(self, data: Any) -> Any:
        names = [name.strip() for name in super().to_internal_value(data).split(",")]
        for name in names:
            if name not in EmailStatus.values:
                self.fail("unknown", status=name[:40])
        return names


class InclusiveEndField(DateTimeBoundField):
    """The end of a range, to the last microsecond: responses show createdAt truncated to milliseconds."""

    def to_internal_value(self, data: Any) -> Any:
        end = super().to_internal_value(data)
        return end.replace(microsecond=end.microsecond // 1000 * 1000 + 999)


class EmailFilters(DateTimeRangeQuery):
    """Query parameters of the list and the export. Unknown parameters are ignored; invalid values are a 422."""

    status = StatusesField(required=False, allow_blank=True)
    search = serializers.CharField(
        required=False, allow_blank=True, max_length=MAX_SEARCH_LENGTH, trim_whitespace=False
    )
    tag = serializers.CharField(required=False, allow_blank=True, max_length=255, trim_whitespace=False)
    to = InclusiveEndField(required=False, allow_blank=True, is_end=True)


def apply_filters(emails: QuerySet[Email], filters: dict[str, Any]) -> QuerySet[Email]:
    """Filter emails. The search is a literal, case-insensitive substring of recipients or subject."""
    if filters.get("status"):
        emails = emails.filter(status__in=filters["status"])
    if filters.get("search"):
        emails = filter_by_text(emails, filters["search"].casefold())
    if filters.get("tag"):
        emails = emails.filter(tags__contains=[filters["tag"]])
    if filters.get("from"):
        emails = emails.filter(created_at__gte=filters["from"])
    if filters.get("to"):
        emails = emails.filter(created_at__lte=filters["to"])
    return emails
