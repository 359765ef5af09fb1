"""Moments and ranges of time as callers write them: RFC 3339, or a day for all of its hours."""

import re
from datetime import UTC, date, datetime, time
from typing import Any

from rest_framework import serializers

# RFC 3339, with a blank for the T and without seconds or offset as people write it.
MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)


class BoundField(serializers.CharField):
    """A moment, or a date: a whole day. ends says that a date stands for its last moment."""

    default_error_messages = {"invalid": "This must be a date or a moment such as 2026-11-21 or 2026-11-21T06:20:00Z."}

    def __init__(self, *, ends: bool, **options: Any) -> None:
        self.ends = ends
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> Any:
        # A plus sign of an offset that was not escaped arrives as a blank.
        text = super().to_internal_value(data)
        moment = parse_datetime(text) or parse_datetime(text.replace(" ", "+")) or self._day(text)
        if moment is None:
            self.fail("invalid")
        return moment

    def _day(self, text: str) -> datetime | None:
        try:
            return datetime.combine(date.fromisoformat(text), time.max if self.ends else time.min, UTC)
        except ValueError:
            return None


class RangeQuery(serializers.Serializer[Any]):
    """`from` and `to`; an empty one is none."""

    locals()["from"] = BoundField(required=False, allow_blank=True, ends=False)
    to = BoundField(required=False, allow_blank=True, ends=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.get("from") and attrs.get("to") and attrs["from"] > attrs["to"]:
            message = serializers.ErrorDetail("from is later than to.", code="invalid_range")
            raise serializers.ValidationError({"from": [message]})
        return attrs


def parse_datetime(text: str) -> datetime | None:
    """Return the moment that an RFC 3339 text names, None for any other text."""
    if not MOMENT.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text.upper())
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
