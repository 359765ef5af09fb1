"""Datetimes on the wire: RFC 3339 in, UTC with milliseconds out."""

import re
from datetime import UTC, datetime

# RFC 3339, with a space accepted for the T, and seconds and offset optional. PostgreSQL has no offset of 16 hours.
RFC3339_DATETIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-](0\d|1[0-5]):\d\d)?", re.ASCII
)


def format_datetime(value: datetime) -> str:
    """Return a datetime as `2026-11-21T06:20:00.000Z`."""
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_timestamp(seconds: float) -> str:
    """Return seconds since 1970 as `2026-11-21T06:20:00.000Z`."""
    return format_datetime(datetime.fromtimestamp(seconds, UTC))


def to_utc(value: datetime) -> datetime | None:
    """Return a datetime in UTC, which is assumed without an offset; None if it is outside of the calendar in UTC."""
    try:
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        return None


def parse_datetime(text: str) -> datetime | None:
    """Return the datetime of an RFC 3339 text, in UTC without an offset; None for any other text."""
    if not RFC3339_DATETIME.fullmatch(text):
        return None
    try:
        value = datetime.fromisoformat(text.upper())
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
