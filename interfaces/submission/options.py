"""Options of an email in header fields, such as X-Postrider-Tags; they are not part of the message.

An invalid or unknown option refuses the message: an ignored schedule would send it at once (docs/decisions/0111).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from rest_framework.exceptions import ErrorDetail, ValidationError

from core.api.errors import Problem
from core.api.fields import (
    DeliverWithinField,
    ObjectField,
    OptionField,
    StrictBooleanField,
    StrictSerializer,
    TextField,
)
from core.api.parser import parse_object
from emails.accept.rules.fields import MetadataField, ScheduleField, TagsField
from emails.models import TlsOption
from interfaces.submission.errors import InvalidHeader
from streams.models import MAIN
from templates_app.serializers import LocaleField

OWN_PREFIX = "x-postrider-"
POSTMARK_METADATA = "x-pm-metadata-"
OPTION_PREFIXES = (OWN_PREFIX, "x-pm-")
IDEMPOTENCY_KEY = "idempotency_key"
DURATION = re.compile(r"(\d{1,6}) ?([smhd]?)")
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
# Postmark's name of the stream of every server.
POSTMARK_MAIN = "outbound"


class OptionsInput(StrictSerializer):
    """The fields of `POST /v1/emails/send` that an option can set."""

    tags = TagsField(required=False)
    metadata = MetadataField(required=False)
    templateId = TextField(required=False, max_length=100)  # noqa: N815
    templateData = ObjectField(required=False)  # noqa: N815
    scheduledFor = ScheduleField(required=False)  # noqa: N815
    trackOpens = StrictBooleanField(required=False)  # noqa: N815
    trackClicks = StrictBooleanField(required=False)  # noqa: N815
    stream = TextField(required=False, max_length=40)
    locale = LocaleField(required=False)
    sensitive = StrictBooleanField(required=False)
    tls = OptionField(TlsOption.values, required=False)
    deliverWithin = DeliverWithinField()  # noqa: N815


# The options of a message that sets none; validating them would take as long as reading its header.
DEFAULTS = OptionsInput().run_validation({})


def _boolean(text: str) -> bool:
    values = {"true": True, "false": False}
    if text.lower() not in values:
        raise ValueError("This must be true or false.")
    return values[text.lower()]


def _list(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",")]


def _one(text: str) -> list[str]:
    return [text]


def _object(text: str) -> dict[str, Any]:
    return parse_object(text.encode())


def _seconds(text: str) -> int:
    match = DURATION.fullmatch(text.strip().lower())
    if not match:
        raise ValueError("This must be a number of seconds, or one with s, m, h or d, such as 10m.")
    return int(match[1]) * UNITS[match[2]]


def _tracked_links(text: str) -> bool:
    values = {"none": False, "htmlonly": True, "htmlandtext": True}
    if text.lower() not in values:
        raise ValueError("This must be None, HtmlOnly or HtmlAndText.")
    return values[text.lower()]


def _postmark_stream(text: str) -> str:
    return MAIN if text == POSTMARK_MAIN else text


@dataclass(frozen=True)
class HeaderOption:
    """The field that a header sets, and the function that reads its value; it raises ValueError or Problem."""

    field: str
    read: Callable[[str], Any] = str


OPTIONS = {
    "x-postrider-idempotency-key": HeaderOption(IDEMPOTENCY_KEY),
    "idempotency-key": HeaderOption(IDEMPOTENCY_KEY),
    "resend-idempotency-key": HeaderOption(IDEMPOTENCY_KEY),
    "x-postrider-tags": HeaderOption("tags", _list),
    "x-postrider-metadata": HeaderOption("metadata", _object),
    "x-postrider-template": HeaderOption("templateId"),
    "x-postrider-template-data": HeaderOption("templateData", _object),
    "x-postrider-scheduled-for": HeaderOption("scheduledFor"),
    "x-postrider-track-opens": HeaderOption("trackOpens", _boolean),
    "x-postrider-track-clicks": HeaderOption("trackClicks", _boolean),
    "x-postrider-stream": HeaderOption("stream"),
    "x-postrider-locale": HeaderOption("locale"),
    "x-postrider-sensitive": HeaderOption("sensitive", _boolean),
    "x-postrider-tls": HeaderOption("tls", str.lower),
    "x-postrider-deliver-within": HeaderOption("deliverWithin", _seconds),
    "x-pm-message-stream": HeaderOption("stream", _postmark_stream),
    "x-pm-tag": HeaderOption("tags", _one),
    "x-pm-trackopens": HeaderOption("trackOpens", _boolean),
    "x-pm-tracklinks": HeaderOption("trackClicks", _tracked_links),
}


@dataclass
class Options:
    """The options of a message by field, with the header that set each."""

    values: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, value: str) -> bool:
        """Read a header; return whether it is an option. Raises InvalidHeader."""
        lower = name.lower()
        if lower.startswith(POSTMARK_METADATA):
            self._add_metadata(name, value)
        elif lower in OPTIONS:
            self._set(name, OPTIONS[lower], value)
        elif lower.startswith(OPTION_PREFIXES):
            raise InvalidHeader(name, "This option is not supported.")
        else:
            return False
        return True

    def validated(self) -> dict[str, Any]:
        """Return the validated fields besides the idempotency key. Raises InvalidHeader with the first error."""
        fields = {name: value for name, value in self.values.items() if name != IDEMPOTENCY_KEY}
        if not fields:
            return dict(DEFAULTS)
        try:
            return dict(OptionsInput().run_validation(fields))
        except ValidationError as error:
            (name, details), *_ = error.detail.items()  # type: ignore[union-attr]
            raise InvalidHeader(self.headers[name], next(error_messages(details))) from error

    def _set(self, name: str, option: HeaderOption, value: str) -> None:
        if option.field in self.values:
            raise InvalidHeader(name, f"This option is given twice; {self.headers[option.field]} sets it, too.")
        try:
            self.values[option.field] = option.read(value)
        except Problem as problem:
            raise InvalidHeader(name, problem.detail) from problem
        except ValueError as error:
            raise InvalidHeader(name, str(error)) from error
        self.headers[option.field] = name

    def _add_metadata(self, name: str, value: str) -> None:
        metadata = self.values.setdefault("metadata", {})
        key = name[len(POSTMARK_METADATA) :]
        if not key or key in metadata:
            raise InvalidHeader(name, "The name of a metadata entry must be unique and not empty.")
        metadata[key] = value
        self.headers.setdefault("metadata", name)


def error_messages(details: Any) -> Iterator[str]:
    """Yield the messages of a field's errors, at any depth."""
    if isinstance(details, ErrorDetail):
        yield str(details)
        return
    for inner in details.values() if isinstance(details, dict) else details:
        yield from error_messages(inner)
