"""Formats of webhook endpoints: the standard one, and those that other apps register when they start.

See docs/decisions/0116.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy

from events.kinds import WEBHOOK_KINDS
from webhooks.sending.signing import signature_headers

STANDARD = "standard"


@dataclass(frozen=True)
class WebhookFormat:
    """A format of events.

    name: in rows and in `/v1`.
    label: on pages.
    kinds: the events that the format has; an endpoint gets no others.
    payload: returns the payload of an event, given as the body of the standard format; None for this body itself.
    headers: returns signature headers beside the standard ones, from the body, these, and the newest secret.
    verification_key: returns the public key for a secret, if the signatures have a key pair.
    """

    name: str
    label: Any
    kinds: Collection[str]
    payload: Callable[[dict[str, Any]], Any] | None = None
    headers: Callable[[bytes, Mapping[str, str], str], Mapping[str, str]] = lambda *_: {}
    verification_key: Callable[[str], str | None] = lambda _: None


_formats: dict[str, WebhookFormat] = {}


def register_format(webhook_format: WebhookFormat) -> None:
    """Make a format available to all endpoints: in AppConfig.ready, since every process starts the same apps."""
    _formats[webhook_format.name] = webhook_format


register_format(WebhookFormat(STANDARD, gettext_lazy("Standard"), WEBHOOK_KINDS))


def find_format(name: str) -> WebhookFormat:
    """Return the format with a name, the standard one for a name that is no longer registered."""
    return _formats.get(name) or _formats[STANDARD]


def format_choices() -> list[tuple[str, Any]]:
    """Return names and labels: a function, so that a new format needs no migration."""
    return [(webhook_format.name, webhook_format.label) for webhook_format in _formats.values()]


def render_body(body: str, *, format_: str) -> bytes:
    """Return the bytes that an endpoint gets for a stored event: the same on every attempt."""
    webhook_format = find_format(format_)
    event = json.loads(body) if webhook_format.payload else {}
    # A delivery from before the endpoint's format was changed may have a kind that the new one has not.
    if webhook_format.payload is None or event["event"] not in webhook_format.kinds:
        return body.encode()
    return json.dumps(webhook_format.payload(event), ensure_ascii=False, separators=(",", ":")).encode()


def format_headers(
    body: bytes, *, format_: str, message_id: str, timestamp: int, keys: Sequence[str]
) -> dict[str, str]:
    """Return the signature headers of one attempt: the standard ones, and those of the format."""
    headers = signature_headers(body, message_id=message_id, timestamp=timestamp, keys=keys)
    return {**headers, **find_format(format_).headers(body, headers, keys[0])}
