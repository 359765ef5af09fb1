"""The filters of the list and of the export (CONTRACT section 3)."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from emails.api.search import holding
from emails.models import Email
from emails.states import State
from lib.datetimes import BoundField, RangeQuery

MAX_SEARCH_LENGTH = 200


class StatusesField(serializers.CharField):
    """A comma list of states."""

    default_error_messages = {"unknown": "Unknown status {status!r}; it is one of " + ", ".join(State.values) + "."}

    def to_internal_value(self, data: Any) -> Any:
        names = [name.strip() for name in super().to_internal_value(data).split(",")]
        for name in names:
            if name not in State.values:
                self.fail("unknown", status=name[:40])
        return names


class LastMomentField(BoundField):
    """Answers show createdAt cut to milliseconds: what was created then is not later than that."""

    def to_internal_value(self, data: Any) -> Any:
        moment = super().to_internal_value(data)
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000 + 999)


class EmailFilters(RangeQuery):
    """Unknown parameters are ignored; bad values of known ones are 422."""

    status = StatusesField(required=False, allow_blank=True)
    search = serializers.CharField(
        required=False, allow_blank=True, max_length=MAX_SEARCH_LENGTH, trim_whitespace=False
    )
    tag = serializers.CharField(required=False, allow_blank=True, max_length=255, trim_whitespace=False)
    to = LastMomentField(required=False, allow_blank=True, ends=True)


def filtered(emails: QuerySet[Email], filters: dict[str, Any]) -> QuerySet[Email]:
    """Apply valid filters; a search is a substring of recipients or subject, taken literally, without case."""
    if filters.get("status"):
        emails = emails.filter(status__in=filters["status"])
    if filters.get("search"):
        emails = holding(emails, filters["search"].casefold())
    if filters.get("tag"):
        emails = emails.filter(tags__contains=[filters["tag"]])
    if filters.get("from"):
        emails = emails.filter(created_at__gte=filters["from"])
    if filters.get("to"):
        emails = emails.filter(created_at__lte=filters["to"])
    return emails
