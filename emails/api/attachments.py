"""Attachments of a request: strict base64, bounded before and after it is decoded."""

import base64
import binascii
import mimetypes
import re
from typing import Any

from rest_framework import serializers

from api.fields import StrictSerializer, TextField
from delivery.message.compose import File
from emails.errors import AttachmentsTooLarge, TooManyAttachments
from lib.email_addresses import FORBIDDEN

MAX_FILES = 10
MAX_TOTAL_BYTES = 10 * 1024 * 1024
# RFC 2045: type/subtype of token characters, then parameters. Only what is linear to match.
TOKEN = r"[A-Za-z0-9!#$%&'*+.^_`{|}~-]{1,100}"  # noqa: S105 - a grammar's token
CONTENT_TYPE = re.compile(rf'{TOKEN}/{TOKEN}( *; *{TOKEN}=({TOKEN}|"[^"\\\x00-\x1f\x7f-\U0010ffff]{{0,100}}"))*')
CONTENT_ID = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.@-]{1,255}")
FALLBACK_TYPE = "application/octet-stream"
# A part of these types would be read as structure, or as a message of its own.
STRUCTURED = ("multipart/", "message/")


class FileNameField(TextField):
    default_error_messages = {"unsafe": "A filename has no path, no control characters, and is not only dots."}

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=255, **options)

    def to_internal_value(self, data: Any) -> str:
        name = super().to_internal_value(data)
        if FORBIDDEN.search(name) or "/" in name or "\\" in name or not name.strip(". "):
            self.fail("unsafe")
        return name


class Base64Field(TextField):
    default_error_messages = {"invalid_base64": "This is not base64 (RFC 4648, padded, without line breaks)."}

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # The framework's are for text: they would look at every character of the bytes' repr, 1 s for 10 MiB.
        self.validators = []

    def to_internal_value(self, data: Any) -> bytes:  # type: ignore[override]
        text = super().to_internal_value(data)
        if len(text) * 3 // 4 > MAX_TOTAL_BYTES + 2:
            raise too_large()
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            self.fail("invalid_base64")


class FileInput(StrictSerializer):
    filename = FileNameField()
    content = Base64Field(allow_blank=True)
    contentType = TextField(required=False, allow_null=True, allow_blank=True, max_length=255)  # noqa: N815
    contentId = TextField(required=False, allow_null=True, max_length=255)  # noqa: N815

    def validate_contentType(self, content_type: str | None) -> str | None:  # noqa: N802
        if content_type is not None and FORBIDDEN.search(content_type):
            message = "This may not contain line breaks or other control characters."
            raise serializers.ValidationError(message, code="control")
        # What does not parse counts as not given: the name tells the type.
        return content_type if content_type and CONTENT_TYPE.fullmatch(content_type) else None

    def validate_contentId(self, content_id: str | None) -> str | None:  # noqa: N802
        if content_id is None or CONTENT_ID.fullmatch(content_id):
            return content_id
        raise serializers.ValidationError(
            "A contentId has letters, digits and @ . - _ only.", code="invalid_content_id"
        )

    def validate(self, attrs: dict[str, Any]) -> File:
        content_type = attrs.get("contentType") or mimetypes.guess_type(attrs["filename"])[0] or FALLBACK_TYPE
        if content_type.lower().startswith(STRUCTURED):
            content_type = FALLBACK_TYPE
        # The framework hands a blank text on as it is.
        return File(attrs["filename"], content_type, attrs["content"] or b"", attrs.get("contentId"))


class FilesField(serializers.ListField):
    """At most 10 files and 10 MiB, decoded, in all."""

    child = FileInput()

    def to_internal_value(self, data: Any) -> list[File]:
        if isinstance(data, list) and len(data) > MAX_FILES:
            detail = f"An email takes {MAX_FILES} attachments; this one has {len(data)}."
            raise TooManyAttachments(detail, limit=MAX_FILES)
        files: list[File] = super().to_internal_value(data)
        if sum(len(file.data) for file in files) > MAX_TOTAL_BYTES:
            raise too_large()
        return files


def too_large() -> AttachmentsTooLarge:
    return AttachmentsTooLarge(
        f"Attachments may have {MAX_TOTAL_BYTES:,} bytes in all, decoded.", limit=MAX_TOTAL_BYTES
    )
