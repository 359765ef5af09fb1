"""Drafts of the compatibility endpoints: each dialect translates to the fields of `POST /v1/emails/send`.

The validation of `/v1` applies to every dialect, with its limits; the few wider limits are in CompatSendInput.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from rest_framework import serializers

from core.api.admission import until_client_leaves
from core.api.errors import PayloadTooLarge, Problem
from core.api.exception_handler import to_problem
from core.api.fields import EntriesField, TextField
from core.lib.email_addresses import InvalidAddress, parse_recipient
from emails.accept.drafts import Draft
from emails.accept.rules.emails import SendInput
from emails.accept.rules.fields import (
    MAX_SUBJECT_LENGTH,
    HeaderField,
    HeadersField,
    MetadataField,
    RecipientsField,
    is_reserved_header,
)
from emails.models import Entrance
from interfaces.compat.attachments import with_clean_files
from interfaces.compat.errors import invalid_field

# The largest number of tags of a provider, and the longest name and value of one with a colon between them.
MAX_TAGS = 75
MAX_TAG_LENGTH = 513
# Headers as given, before those that Postrider sets are removed.
MAX_GIVEN_HEADERS = 100
# Processor time to read the emails of one request: 1,000 ordinary ones take a tenth of it.
MAX_READ_SECONDS = 3.0
# The HTML of a template that has text only: a template of Postrider always has HTML.
TEXT_ONLY_HTML = "<!-- text only -->"
# White space that RFC 2045 permits in base64: Ruby, PHP and Python fold it into lines.
FOLDING = str.maketrans("", "", "\r\n\t ")

NativeBody = dict[str, Any]
V = TypeVar("V")


class NamedMetadataField(MetadataField):
    """Metadata whose members have names, which are those of arguments and tags in the events of the dialects."""

    default_error_messages = {"no_name": "The name of a member must not be empty."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        metadata = super().to_internal_value(data)
        if "" in metadata:
            self.fail("no_name")
        return metadata


class CompatSendInput(SendInput):
    """The fields of `/v1` with the limits of the dialects."""

    to = RecipientsField(required=False)
    subject = HeaderField(max_length=MAX_SUBJECT_LENGTH, required=False, allow_null=True, allow_blank=True)
    tags = EntriesField(  # type: ignore[assignment]
        child=TextField(max_length=MAX_TAG_LENGTH, allow_blank=True), max_length=MAX_TAGS, required=False
    )
    metadata = NamedMetadataField(required=False, allow_null=True)


# Created once: validation keeps no state in it.
SEND = CompatSendInput()


def build_draft(body: NativeBody) -> Draft:
    """Validate the fields of an email; None stands for a missing field. Raises ValidationError and InvalidFields."""
    draft: Draft
    draft, _ = SEND.run_validation({name: value for name, value in with_clean_files(body).items() if value is not None})
    return replace(draft, entrance=Entrance.COMPATIBILITY)


def read_drafts(read: Callable[[Any], Draft], items: Iterable[Any]) -> list[Draft | Problem]:
    """Return the draft of each item of a batch, or its problem.

    Raises PayloadTooLarge after MAX_READ_SECONDS, and ClientClosedRequest.
    """
    latest = time.thread_time() + MAX_READ_SECONDS
    drafts: list[Draft | Problem] = []
    for item in until_client_leaves(items):
        if time.thread_time() > latest:
            raise PayloadTooLarge("Reading these emails takes too long. Send fewer of them in a request.")
        drafts.append(_draft_or_problem(read, item))
    return drafts


def _draft_or_problem(read: Callable[[Any], Draft], item: Any) -> Draft | Problem:
    try:
        return read(item)
    except (Problem, serializers.ValidationError) as error:
        return to_problem(error)


def unfolded_base64(content: Any) -> Any:
    """Return base64 without its line breaks and blanks; any other value unchanged."""
    return content.translate(FOLDING) if isinstance(content, str) else content


def as_object(value: Any, field: str) -> dict[str, Any]:
    """Return a JSON object, an empty one for null. Raises InvalidFields."""
    if value is not None and not isinstance(value, dict):
        raise invalid_field(field, "This must be an object.", code="invalid_type")
    return value or {}


def as_list(value: Any, field: str, *, at_most: int) -> list[Any]:
    """Return a JSON array, an empty one for null. Raises InvalidFields."""
    if value is not None and not isinstance(value, list):
        raise invalid_field(field, "This must be an array.", code="invalid_type")
    if len(value or ()) > at_most:
        raise invalid_field(field, f"At most {at_most:,} entries are allowed.", code="max_length")
    return value or []


def as_objects(value: Any, field: str, *, at_most: int) -> list[dict[str, Any]]:
    return [as_object(item, f"{field}[{index}]") for index, item in enumerate(as_list(value, field, at_most=at_most))]


def read_choice(value: Any, choices: Mapping[str, V], *, field: str) -> V | None:
    """Return our value for a dialect's word, None for null. Raises InvalidFields for any other word."""
    if value is None:
        return None
    if not isinstance(value, str) or value not in choices:
        raise invalid_field(field, f"Use one of {', '.join(choices)}.")
    return choices[value]


def read_address(value: Any, field: str) -> str:
    """Return an address without its name. Raises InvalidFields."""
    try:
        return parse_recipient(value if isinstance(value, str) else "").spec
    except InvalidAddress as error:
        raise invalid_field(field, str(error), code="invalid_email") from error


def rename_fields(body: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that are set, with our names. names: ours by those of the dialect."""
    return {native: body[name] for name, native in names.items() if body.get(name) is not None}


def valid_field(name: str, value: Any) -> Any:
    """Return the validated value of one field of an email. Raises ValidationError."""
    return validate_field(SEND.fields[name], value, name=name)


def validate_field(field: "serializers.Field[Any, Any, Any, Any]", value: Any, *, name: str) -> Any:
    """Return the validated value of a field with the name that the dialect has for it. Raises ValidationError."""
    try:
        return field.run_validation(value)
    except serializers.ValidationError as error:
        raise serializers.ValidationError({name: error.detail}) from error


def custom_headers(headers: Collection[tuple[str, Any]]) -> dict[str, Any] | None:
    """Return the headers without those that Postrider sets, which a provider's users may send.

    Raises InvalidFields for too many headers, and for one that is given twice.
    """
    if len(headers) > MAX_GIVEN_HEADERS:
        raise invalid_field("headers", f"At most {MAX_GIVEN_HEADERS} headers are allowed.", code="max_length")
    kept: dict[str, Any] = {}
    for name, value in headers:
        if name in kept:
            # One in another case is found by the validation of `/v1`.
            raise invalid_field(f"headers.{name}", str(HeadersField.default_error_messages["duplicate_header"]))
        if not is_reserved_header(name):
            kept[name] = value
    return kept or None


def with_html(native: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a template, with HTML if they have text only."""
    if native.get("textContent") and not native.get("htmlContent"):
        return native | {"htmlContent": TEXT_ONLY_HTML}
    return native
