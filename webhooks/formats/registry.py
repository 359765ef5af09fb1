"""Formats of webhook endpoints: the standard one, and those of other services for applications that move from them."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from events.kinds import FORMATTED_KINDS
from webhooks.formats.postmark import postmark_payload
from webhooks.formats.resend import resend_payload
from webhooks.formats.sendgrid import sendgrid_headers, sendgrid_payload
from webhooks.models import Webhook
from webhooks.sending.signing import signature_headers

Format = Webhook.Format
PAYLOADS: dict[str, Callable[[dict[str, Any]], Any]] = {
    Format.RESEND: resend_payload,
    Format.POSTMARK: postmark_payload,
    Format.SENDGRID: sendgrid_payload,
}


def render_body(body: str, *, format_: str) -> bytes:
    """Return the bytes that an endpoint gets for a stored event: the same on every attempt."""
    render = PAYLOADS.get(format_)
    event = json.loads(body) if render else {}
    # A delivery from before the endpoint's format was changed may have a type that other services do not have.
    if render is None or event["event"] not in FORMATTED_KINDS:
        return body.encode()
    return json.dumps(render(event), ensure_ascii=False, separators=(",", ":")).encode()


def format_headers(
    body: bytes, *, format_: str, message_id: str, timestamp: int, keys: Sequence[str]
) -> dict[str, str]:
    """Return the signature headers of one attempt: the standard ones, and those of the format."""
    headers = signature_headers(body, message_id=message_id, timestamp=timestamp, keys=keys)
    if format_ == Format.RESEND:
        headers |= {f"svix-{name}": headers[f"webhook-{name}"] for name in ("id", "timestamp", "signature")}
    if format_ == Format.SENDGRID:
        headers |= sendgrid_headers(body, timestamp=timestamp, secret=keys[0])
    return headers
