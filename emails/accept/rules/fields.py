"""Fields of an email with their rules: addresses, header values, bodies, tags, metadata and times.

See docs/decisions/0009.
"""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.translation import gettext_lazy
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.api.fields import (
    ADDRESS_SCHEMA,
    ONE_LINE,
    AddressField,
    EntriesField,
    ObjectField,
    RecipientField,
    TextField,
)
from core.lib.datetimes import parse_datetime
from core.lib.email_addresses import FORBIDDEN, Address

MAX_RECIPIENTS = 50
MAX_SUBJECT_LENGTH = 998
MAX_BODY_BYTES = 1024 * 1024
MAX_TAGS = 10
MAX_METADATA_BYTES = 10_000
MAX_AHEAD = timedelta(days=30)
MAX_EXPIRY_AHEAD = timedelta(days=365)
MAX_HEADERS = 30
MAX_HEADER_LENGTH = 998
HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,76}")
# Headers that Postrider sets, or that relays and providers act on.
RESERVED_HEADERS = frozenset(
    {
        "from", "sender", "reply-to", "to", "cc", "bcc", "subject", "date", "message-id", "mime-version", "return-path",
        "received", "delivered-to", "auto-submitted", "feedback-id", "precedence", "authentication-results",
    }
)  # fmt: skip
ADDRESSES = {"type": "array", "items": ADDRESS_SCHEMA, "maxItems": MAX_RECIPIENTS}
RESERVED_PREFIXES = (
    "content-", "list-", "dkim-", "arc-", "resent-", "x-smtpapi", "x-ses-", "x-mc-", "x-pm-", "x-msys-", "x-mailgun-",
    "x-mj-", "x-sib-",
)  # fmt: skip


@extend_schema_field({"anyOf": [ADDRESS_SCHEMA, ADDRESSES]})
class AddressListField(EntriesField):
    """One address or a list of addresses."""

    child: AddressField = RecipientField()
    default_error_messages = {"not_a_list": "This must be an address or a list of addresses."}

    def to_internal_value(self, data: Any) -> list[Address]:
        addresses: list[Address] = super().to_internal_value([data] if isinstance(data, str) else data)
        return addresses


@extend_schema_field({"anyOf": [ADDRESS_SCHEMA, {**ADDRESSES, "minItems": 1}]})
class RecipientsField(AddressListField):
    """Recipients: at least one address."""

    def __init__(self, **options: Any) -> None:
        super().__init__(min_length=1, **options)


@extend_schema_field({"anyOf": [ADDRESS_SCHEMA, ADDRESSES]})
class ReplyToField(AddressListField):
    """`replyTo`: one address or a list; the error of a single address has no index."""

    child = AddressField()

    def to_internal_value(self, data: Any) -> list[Address]:
        return super().to_internal_value(data) if isinstance(data, list) else [self.child.run_validation(data)]


@extend_schema_field({"type": "string", "pattern": ONE_LINE})
class HeaderField(TextField):
    """A header value: it must not contain a line break."""

    default_error_messages = {"control": "This must not contain line breaks or other control characters."}

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if FORBIDDEN.search(text):
            self.fail("control")
        return text


@extend_schema_field({"type": "string", "maxLength": MAX_BODY_BYTES})
class BodyField(TextField):
    """html or text: at most 1 MiB in UTF-8."""

    default_error_messages = {"too_long": "This must not exceed 1 MiB in UTF-8."}

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_blank=True, **options)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if len(text) > MAX_BODY_BYTES or len(text.encode()) > MAX_BODY_BYTES:
            self.fail("too_long")
        return text


@extend_schema_field(
    {
        "type": "object",
        "description": "Custom headers. Headers that Postrider sets, or that mail servers act on, are refused.",
        "maxProperties": MAX_HEADERS,
        "propertyNames": {"pattern": f"^{HEADER_NAME.pattern}$"},
        "additionalProperties": {"type": "string", "maxLength": MAX_HEADER_LENGTH, "pattern": ONE_LINE},
    }
)
class HeadersField(serializers.DictField):
    """Custom headers: at most 30, without reserved ones (docs/specification.md, Sending an email)."""

    child = HeaderField(max_length=MAX_HEADER_LENGTH, allow_blank=True)
    default_error_messages = {
        "not_a_dict": "This must be an object of header names and values.",
        "max_length": f"At most {MAX_HEADERS} custom headers are allowed.",
        "invalid_header_name": "A header name must consist of 1 to 76 alphanumeric characters and hyphens.",
        "reserved_header": "This header is reserved: Postrider sets it, or mail servers act on it.",
        "duplicate_header": "This header is given more than once. Names are case-insensitive.",
    }

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            self.fail("not_a_dict")
        if len(data) > MAX_HEADERS:
            self.fail("max_length")
        errors = {name: [self._error(code)] for name, code in self._invalid_names(data)}
        try:
            values: dict[str, str] = super().to_internal_value(data)
        except serializers.ValidationError as error:
            raise serializers.ValidationError({**error.detail, **errors}) from error  # type: ignore[dict-item]
        if errors:
            raise serializers.ValidationError(errors)
        return values

    def _invalid_names(self, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        seen: set[str] = set()
        for name in names:
            lower = name.lower()
            if not HEADER_NAME.fullmatch(name):
                yield name, "invalid_header_name"
            elif is_reserved_header(name):
                yield name, "reserved_header"
            elif lower in seen:
                yield name, "duplicate_header"
            seen.add(lower)

    def _error(self, code: str) -> serializers.ErrorDetail:
        return serializers.ErrorDetail(str(self.error_messages[code]), code=code)


def is_reserved_header(name: str) -> bool:
    """Return whether Postrider sets the header, or mail servers act on it."""
    return name.lower() in RESERVED_HEADERS or name.lower().startswith(RESERVED_PREFIXES)


class DateTimeField(TextField):
    """An RFC 3339 timestamp; one without an offset is in UTC."""

    default_error_messages = {"invalid": "This must be an RFC 3339 timestamp, such as 2026-11-21T06:20:00Z."}

    def to_internal_value(self, data: Any) -> Any:
        value = parse_datetime(super().to_internal_value(data))
        if value is None:
            self.fail("invalid")
        return value


class MetadataField(ObjectField):
    default_error_messages = {"too_large": f"metadata must not exceed {MAX_METADATA_BYTES:,} bytes."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        metadata: dict[str, Any] = super().to_internal_value(data)
        if len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode()) > MAX_METADATA_BYTES:
            self.fail("too_large")
        return metadata


@extend_schema_field({"type": "string", "format": "date-time"})
class ScheduleField(DateTimeField):
    """A time in the future, at most 30 days ahead."""

    default_error_messages = {
        "in_past": gettext_lazy("scheduledFor is in the past. Omit it to send immediately."),
        "too_far": gettext_lazy("scheduledFor must be at most 30 days ahead."),
    }

    def to_internal_value(self, data: Any) -> Any:
        scheduled_for = super().to_internal_value(data)
        now = datetime.now(UTC)
        if scheduled_for <= now:
            self.fail("in_past")
        if scheduled_for > now + MAX_AHEAD:
            self.fail("too_far")
        return scheduled_for


@extend_schema_field({"type": "string", "format": "date-time"})
class EmailExpiryField(DateTimeField):
    """A time in the future, at most a year ahead."""

    default_error_messages = {
        "in_past": gettext_lazy("expiresAt is in the past."),
        "too_far": gettext_lazy("expiresAt must be at most a year ahead."),
    }

    def to_internal_value(self, data: Any) -> Any:
        expires_at = super().to_internal_value(data)
        now = datetime.now(UTC)
        if expires_at <= now:
            self.fail("in_past")
        if expires_at > now + MAX_EXPIRY_AHEAD:
            self.fail("too_far")
        return expires_at


class TagsField(EntriesField):
    # Some providers send tags as headers.
    child = HeaderField(max_length=255)

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_TAGS, **options)
