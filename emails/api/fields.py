"""Serializer fields of an email: addresses, and texts that end up in a header."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from rest_framework import serializers

from api.fields import AddressField, TextField
from lib.datetimes import parse_datetime
from lib.email_addresses import FORBIDDEN, Address

MAX_SUBJECT_LENGTH = 998
MAX_HEADERS = 30
MAX_HEADER_LENGTH = 998
HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,76}")
# Set by the service, or read by relays and providers as an order.
RESERVED_HEADERS = frozenset(
    {
        "from", "sender", "reply-to", "to", "cc", "bcc", "subject", "date", "message-id", "mime-version", "return-path",
        "received", "delivered-to", "auto-submitted", "feedback-id", "precedence", "authentication-results",
    }
)  # fmt: skip
RESERVED_PREFIXES = (
    "content-", "list-", "dkim-", "arc-", "resent-", "x-smtpapi", "x-ses-", "x-mc-", "x-pm-", "x-msys-", "x-mailgun-",
    "x-mj-", "x-sib-",
)  # fmt: skip


class AddressListField(serializers.ListField):
    child = AddressField()


class RecipientsField(AddressListField):
    """`to`: one address, or a list of them."""

    def to_internal_value(self, data: Any) -> list[Address]:
        return super().to_internal_value([data] if isinstance(data, str) else data)


class HeaderField(TextField):
    """A text that becomes a header's value: nothing in it may end the line."""

    default_error_messages = {"control": "This may not contain line breaks or other control characters."}

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if FORBIDDEN.search(text):
            self.fail("control")
        return text


class BodyField(TextField):
    """html or text: at most 1 MiB in UTF-8."""

    max_bytes = 1024 * 1024
    default_error_messages = {"too_long": "This has more than 1 MiB in UTF-8."}

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_blank=True, **options)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if len(text) > self.max_bytes or len(text.encode()) > self.max_bytes:
            self.fail("too_long")
        return text


class HeadersField(serializers.DictField):
    """Custom headers: at most 30, none that we or a relay would act on (CONTRACT section 3)."""

    child = HeaderField(max_length=MAX_HEADER_LENGTH, allow_blank=True)
    default_error_messages = {
        "not_a_dict": "This must be an object of names and values.",
        "max_length": f"An email takes {MAX_HEADERS} headers of its own.",
        "invalid_header_name": "A header name has 1 to 76 letters, digits and dashes.",
        "reserved_header": "This header is set by the service, or would steer a relay.",
        "duplicate_header": "This header is given twice; names are compared without case.",
    }

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            self.fail("not_a_dict")
        if len(data) > MAX_HEADERS:
            self.fail("max_length")
        faults = {name: [self._error(code)] for name, code in self._faults(data)}
        try:
            values: dict[str, str] = super().to_internal_value(data)
        except serializers.ValidationError as error:
            raise serializers.ValidationError({**error.detail, **faults}) from error  # type: ignore[dict-item]
        if faults:
            raise serializers.ValidationError(faults)
        return values

    def _faults(self, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        seen: set[str] = set()
        for name in names:
            lower = name.lower()
            if not HEADER_NAME.fullmatch(name):
                yield name, "invalid_header_name"
            elif lower in RESERVED_HEADERS or lower.startswith(RESERVED_PREFIXES):
                yield name, "reserved_header"
            elif lower in seen:
                yield name, "duplicate_header"
            seen.add(lower)

    def _error(self, code: str) -> serializers.ErrorDetail:
        return serializers.ErrorDetail(str(self.error_messages[code]), code=code)


class MomentField(TextField):
    """An RFC 3339 moment; one without an offset is in UTC."""

    default_error_messages = {"invalid": "This must be a moment such as 2026-11-21T06:20:00Z."}

    def to_internal_value(self, data: Any) -> Any:
        moment = parse_datetime(super().to_internal_value(data))
        if moment is None:
            self.fail("invalid")
        return moment
