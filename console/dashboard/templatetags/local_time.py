"""Times in the time zone of the member, with UTC as their title (docs/decisions/0133)."""

from datetime import UTC, datetime

from django import template
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

FORMATS = {"": "DATETIME_FORMAT", "seconds": "SECONDS_FORMAT", "day": "DATE_FORMAT"}


@register.filter
def local_time(value: datetime | None, precision: str = "") -> SafeString | str:
    """Return a <time> element; an empty text for None. precision: "seconds", "day", or minutes by default."""
    if value is None:
        return ""
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        date_format(value.astimezone(UTC), FORMATS["seconds"]),
        date_format(_in_current_zone(value), FORMATS[precision]),
    )


def _in_current_zone(value: datetime) -> datetime:
    """Return a time in the time zone of the page; in UTC if it is outside of the calendar there."""
    try:
        return timezone.localtime(value)
    except OverflowError:
        return value
