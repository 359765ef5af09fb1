"""Small things that several pages say alike."""

from datetime import UTC, datetime

# What a status means to the eye: the variants of unfold's labels.
TONES = {
    "scheduled": "warning",
    "queued": "default",
    "sent": "info",
    "delivered": "success",
    "opened": "success",
    "clicked": "success",
    "bounced": "danger",
    "failed": "danger",
    "cancelled": "default",
}


def moment(at: datetime | None) -> str:
    """Write a time as the lists do, in UTC; a dash for none."""
    return f"{at.astimezone(UTC):%-d %b %Y, %H:%M}" if at else "-"


def shortened(text: str, *, to: int = 70) -> str:
    return text if len(text) <= to else f"{text[: to - 1]}…"
