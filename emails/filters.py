"""The filters of the list and of the export (CONTRACT section 3)."""

from datetime import UTC, date, datetime, time
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from emails.fields import read_moment
from emails.models import Email
from emails.states import State

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


class BoundField(serializers.CharField):
    """A moment, or a date: a whole day. ends says that a date stands for its last moment."""

    default_error_messages = {"invalid": "This must be a date or a moment such as 2026-11-21 or 2026-11-21T06:20:00Z."}

    def __init__(self, *, ends: bool, **options: Any) -> None:
        self.ends = ends
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> Any:
        # A plus sign of an offset that was not escaped arrives as a blank.
        text = super().to_internal_value(data)
        moment = read_moment(text) or read_moment(text.replace(" ", "+")) or self._day(text)
        if moment is None:
            self.fail("invalid")
        return _end_of_millisecond(moment) if self.ends else moment

    def _day(self, text: str) -> datetime | None:
        try:
            return datetime.combine(date.fromisoformat(text), time.max if self.ends else time.min, UTC)
        except ValueError:
            return None


class EmailFilters(serializers.Serializer[Any]):
    """Unknown parameters are ignored; bad values of known ones are 422."""

    status = StatusesField(required=False, allow_blank=True)
    search = serializers.CharField(
        required=False, allow_blank=True, max_length=MAX_SEARCH_LENGTH, trim_whitespace=False
    )
    tag = serializers.CharField(required=False, allow_blank=True, max_length=255, trim_whitespace=False)
    locals()["from"] = BoundField(required=False, allow_blank=True, ends=False)
    to = BoundField(required=False, allow_blank=True, ends=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.get("from") and attrs.get("to") and attrs["from"] > attrs["to"]:
            message = serializers.ErrorDetail("from is later than to.", code="invalid_range")
            raise serializers.ValidationError({"from": [message]})
        return attrs


def filtered(emails: QuerySet[Email], filters: dict[str, Any]) -> QuerySet[Email]:
    """Apply valid filters; a search is a substring of recipients or subject, taken literally, without case."""
    if filters.get("status"):
        emails = emails.filter(status__in=filters["status"])
    if filters.get("search"):
        emails = emails.filter(search_text__contains=filters["search"].casefold())
    if filters.get("tag"):
        emails = emails.filter(tags__contains=[filters["tag"]])
    if filters.get("from"):
        emails = emails.filter(created_at__gte=filters["from"])
    if filters.get("to"):
        emails = emails.filter(created_at__lte=filters["to"])
    return emails


def _end_of_millisecond(moment: datetime) -> datetime:
    """Answers show createdAt cut to milliseconds: what was created then is not later than that."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000 + 999)
