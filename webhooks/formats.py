"""Formats of webhook endpoints: the standard one, and those that other apps register when they start.

See docs/decisions/0116.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext_lazy

from core.lib.registry import Registry
from events.kinds import WEBHOOK_KINDS, EventBody
from webhooks.sending.signing import signature_headers

STANDARD = "standard"
JSON = "application/json"


@dataclass(frozen=True)
class RequestBody:
    """The body of an attempt."""

    data: bytes
    content_type: str = JSON


@dataclass(frozen=True)
class LargeBody:
    """A body with files, which is rendered for each attempt and never stored (docs/decisions/0241).

    measure: returns its approximate size in bytes, from the body of the standard format.
    render: returns it, from this body, the newest secret, and the time of the attempt in seconds since 1970; None if
    the subject was deleted.
    """

    measure: Callable[[EventBody], int]
    render: Callable[[EventBody, str, int], RequestBody | None]


@dataclass(frozen=True)
class WebhookFormat:
    """A format of events.

    name: the name in rows and in `/v1`.
    label: the name on pages.
    kinds: the events that the format has; an endpoint gets no others.
    payload: returns the payload of an event, given as the body of the standard format; None for this body itself.
    large: the bodies of events that are rendered for each attempt, by their kinds.
    headers: returns signature headers beside the standard ones, from the body, these, and the newest secret.
    verification_key: returns the public key for a secret, if the signatures have a key pair.
    refuses_others: whether an endpoint can subscribe only to the events that the format has.
    final_statuses: the HTTP statuses after which no attempt follows.
    """

    name: str
    label: Any
    kinds: Collection[str]
    payload: Callable[[EventBody], Any] | None = None
    headers: Callable[[bytes, Mapping[str, str], str], Mapping[str, str]] = lambda *_: {}
    verification_key: Callable[[str], str | None] = lambda _: None
    large: Mapping[str, LargeBody] = field(default_factory=dict)
    refuses_others: bool = False
    final_statuses: Collection[int] = ()

    @property
    def small_kinds(self) -> Collection[str]:
        """The kinds whose bodies are made of the stored one."""
        return [kind for kind in self.kinds if kind not in self.large]


FORMATS = Registry({STANDARD: WebhookFormat(STANDARD, gettext_lazy("Standard"), WEBHOOK_KINDS)})


def find_format(name: str) -> WebhookFormat:
    """Return the format with a name, the standard one for a name that is no longer registered."""
    return FORMATS.get(name) or FORMATS[STANDARD]


def format_choices() -> list[tuple[str, Any]]:
    """Return names and labels: a function, so that a new format needs no migration."""
    return [(webhook_format.name, webhook_format.label) for webhook_format in FORMATS.values()]


def render_body(body: str, *, format_: str) -> bytes:
    """Return the bytes that an endpoint gets for a stored event: the same on every attempt.

    Of an event that is rendered for each attempt, and of one whose subject was deleted, the standard body.
    """
    webhook_format = find_format(format_)
    if webhook_format.payload is None:
        return body.encode()
    event: EventBody = json.loads(body)
    # A delivery from before the endpoint's format was changed may have a kind that the new one has not.
    if event["event"] not in webhook_format.small_kinds or is_deleted(event):
        return body.encode()
    return _to_json(webhook_format.payload(event))


def find_large(body: str, *, format_: str) -> tuple[LargeBody, EventBody] | None:
    """Return how a stored event is rendered for each attempt, with its standard body; None for one that is not."""
    webhook_format = find_format(format_)
    if not webhook_format.large:
        return None
    event = json.loads(body)
    large = webhook_format.large.get(event["event"])
    return None if large is None or is_deleted(event) else (large, event)


def is_deleted(event: EventBody) -> bool:
    """Return whether the subject of an event was deleted after it was published."""
    return bool(event["data"].get("deleted"))


def deleted_body(event: EventBody) -> RequestBody:
    """Return the standard body of an event whose subject is gone, as webhooks.services.empty_bodies leaves it."""
    data = {"id": event["data"].get("id"), "deleted": True}
    return RequestBody(_to_json({**event, "data": data}))


def _to_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def format_headers(
    body: bytes, *, format_: str, message_id: str, timestamp: int, keys: Sequence[str]
) -> dict[str, str]:
    """Return the signature headers of one attempt: the standard ones, and those of the format."""
    headers = signature_headers(body, message_id=message_id, timestamp=timestamp, keys=keys)
    return {**headers, **find_format(format_).headers(body, headers, keys[0])}
