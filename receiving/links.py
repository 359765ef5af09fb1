"""Download URLs of received content: the token in the path is the permission, until it expires (docs/decisions/0232).

A token is deterministic: each attempt of a webhook has the same URLs.
"""

import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings

from core.lib.ids import from_uuid, to_uuid
from core.lib.tokens import InvalidToken, make_token, read_token

PURPOSE = "received-content"
# The received email, the number of the attachment, and the expiry in seconds since 1970.
PAYLOAD = struct.Struct(">16sHQ")
RAW = 0xFFFF
API_LIFETIME = timedelta(hours=1)
WEBHOOK_LIFETIME = timedelta(days=7)
# For emails that are deleted when their deliveries have ended, which takes a day.
LEAST_LIFETIME = timedelta(days=2)


@dataclass(frozen=True)
class Download:
    """A valid link. part: the number of the attachment; RAW for the message."""

    email_id: str
    part: int


def download_url(email_id: str, part: int, *, expires_at: datetime) -> str:
    payload = PAYLOAD.pack(to_uuid(email_id, prefix="inb_").bytes, part, int(expires_at.timestamp()))
    return f"{settings.PUBLIC_URL}/inbound/{make_token(payload, purpose=PURPOSE)}"


def read_download(token: str, *, now: datetime) -> Download:
    """Return what a token permits. Raises InvalidToken, also after its expiry."""
    data = read_token(token, purpose=PURPOSE)
    if len(data) != PAYLOAD.size:
        raise InvalidToken("not a download")
    email, part, expires = PAYLOAD.unpack(data)
    if now >= datetime.fromtimestamp(expires, UTC):
        raise InvalidToken("expired")
    return Download(from_uuid(UUID(bytes=email), prefix="inb_"), part)


def webhook_expiry(received_at: datetime, *, store_days: int) -> datetime:
    """Return the end of the URLs in webhooks: not counted from the attempt, so that all attempts are equal."""
    lifetime = min(WEBHOOK_LIFETIME, timedelta(days=store_days)) if store_days else LEAST_LIFETIME
    return received_at + lifetime
