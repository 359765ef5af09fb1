"""Drafts of the compatibility endpoints: each dialect translates to the fields of `POST /v1/emails/send`.

The validation of `/v1` applies to every dialect, with its limits; the few wider limits are in CompatSendInput.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from rest_framework import serializers

from api.errors import Problem
from api.exception_handler import to_problem
from api.fields import EntriesField, TextField
from compat.errors import invalid_field
from emails.accept.drafts import Draft
from emails.api.fields import MAX_SUBJECT_LENGTH, RESERVED_HEADERS, RESERVED_PREFIXES, HeaderField
from emails.api.inputs import SendInput
from emails.models import Entrance

# The largest number of tags of a provider, and the longest name and value of one with a colon between them.
MAX_TAGS = 75
MAX_TAG_LENGTH = 513

NativeBody = dict[str, Any]


class CompatSendInput(SendInput):
    """The fields of `/v1` with the limits of the dialects."""

    subject = HeaderField(max_length=MAX_SUBJECT_LENGTH, required=False, allow_null=True, allow_blank=True)
    tags = EntriesField(  # type: ignore[assignment]
        child=TextField(max_length=MAX_TAG_LENGTH, allow_blank=True), max_length=MAX_TAGS, required=False
    )


# Created once: validation keeps no state in it.
SEND = CompatSendInput()


def build_draft(body: NativeBody) -> Draft:
    """Validate the fields of an email; None stands for a missing field. Raises ValidationError."""
    draft: Draft
    draft, _ = SEND.run_validation({name: value for name, value in body.items() if value is not None})
    return replace(draft, entrance=Entrance.COMPATIBILITY)


def draft_or_problem(read: Callable[[Any], Draft], item: Any) -> Draft | Problem:
    """Return the draft of one item of a batch, or its problem."""
    try:
        return read(item)
    except (Problem, serializers.ValidationError) as error:
        return to_problem(error)


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


def custom_headers(headers: Iterable[tuple[Any, Any]]) -> dict[str, Any] | None:
    """Return the headers without those that Postrider sets, which a provider's users may send."""
    kept = {name: value for name, value in headers if not _is_reserved(name)}
    return kept or None


def texts(values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return metadata, None if it is empty."""
    return dict(values) or None


def _is_reserved(name: Any) -> bool:
    lower = str(name).lower()
    return lower in RESERVED_HEADERS or lower.startswith(RESERVED_PREFIXES)
