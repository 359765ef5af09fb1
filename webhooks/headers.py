"""Further headers of the requests to an endpoint, such as Authorization (docs/decisions/0212).

Their values are secrets: they are sealed, and shown as MASK.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.api.errors import InvalidFields
from core.api.fields import ObjectField, TextField
from core.lib.coded_texts import CodedText
from core.lib.translation import translate

MAX_HEADERS = 10
MAX_VALUE_LENGTH = 2_000
MASK = "********"
HEADERS = f"Further headers of the requests, such as `Authorization`, by name. Their values are shown as `{MASK}`."
# RFC 9110, sections 5.1 and 5.5, without obsolete text.
NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}"
VALUE = r"[!-~](?:[ -~\t]*[!-~])?"
# Those of the connection and of the body (RFC 9110, section 7.6.1), and those with which a receiver verifies a request.
RESERVED = frozenset(
    {
        "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect", "host",
        "http2-settings", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te",
        "trailer", "transfer-encoding", "upgrade", "via",
    }
)  # fmt: skip
RESERVED_PREFIXES = ("svix-", "webhook-", "x-service-signature", "x-twilio-email-event-webhook-")


@extend_schema_field(
    {
        "type": "object",
        "propertyNames": {"pattern": f"^{NAME}$"},
        "additionalProperties": {"type": "string", "pattern": f"^{VALUE}$", "maxLength": MAX_VALUE_LENGTH},
        "maxProperties": MAX_HEADERS,
    }
)
class WebhookHeadersField(ObjectField):
    """Headers by name, which are not reserved, and whose values fit in a header."""

    child = TextField(max_length=MAX_VALUE_LENGTH)

    def to_internal_value(self, data: Any) -> dict[str, str]:
        if isinstance(data, dict) and len(data) > MAX_HEADERS:
            detail = CodedText("api.too_many_entries", limit=f"{MAX_HEADERS:,}")
            raise serializers.ValidationError(translate(detail), code="max_length")
        headers: dict[str, str] = super().to_internal_value(data)
        names = [name.lower() for name in headers]
        refused = {
            name: [serializers.ErrorDetail(translate(refusal), code=refusal.text_code.partition(".")[2])]
            for name, value in headers.items()
            if (refusal := _refusal(name, value, is_repeated=names.count(name.lower()) > 1))
        }
        if refused:
            raise serializers.ValidationError(refused)
        return headers


def _refusal(name: str, value: str, *, is_repeated: bool) -> CodedText | None:
    plain = name.lower()
    if not re.fullmatch(NAME, name):
        return CodedText("webhooks.header_name")
    if plain in RESERVED or plain.startswith(RESERVED_PREFIXES):
        return CodedText("webhooks.header_reserved")
    if is_repeated:
        return CodedText("webhooks.header_repeated")
    return None if re.fullmatch(VALUE, value) else CodedText("webhooks.header_value")


def masked(headers: Iterable[str]) -> dict[str, str]:
    """Return the names of headers with values that show nothing."""
    return dict.fromkeys(headers, MASK)


def unmasked(given: Mapping[str, str], *, current: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request, in which MASK keeps the current value of a header.

    Raises InvalidFields for MASK without a current value.
    """
    by_name = {name.lower(): value for name, value in current.items()}
    problems = [
        {"field": f"headers.{name}", "code": "header_masked", "detail": CodedText("webhooks.header_masked")}
        for name, value in given.items()
        if value == MASK and name.lower() not in by_name
    ]
    if problems:
        raise InvalidFields(problems)
    return {name: by_name[name.lower()] if value == MASK else value for name, value in given.items()}
