"""Attachments of a request: strict base64, with size limits before and after decoding."""

import base64
import binascii
import mimetypes
import re
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.api.fields import EntriesField, StrictBooleanField, StrictSerializer, TextField
from core.delivery.message.compose import File, Placement
from core.lib.email_addresses import FORBIDDEN
from emails.errors import AttachmentsTooLarge, TooManyAttachments

MAX_FILES = 10
MAX_TOTAL_BYTES = 10 * 1024 * 1024
# RFC 2045: type/subtype of token characters, then parameters. The pattern matches in linear time.
TOKEN = r"[A-Za-z0-9!#$%&'*+.^_`{|}~-]{1,100}"  # noqa: S105 - a grammar's token
CONTENT_TYPE = re.compile(rf'{TOKEN}/{TOKEN}( *; *{TOKEN}=({TOKEN}|"[^"\\\x00-\x1f\x7f-\U0010ffff]{{0,100}}"))*')
CONTENT_ID = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.@-]{1,255}")
FILE_NAME = r"^(?=.*[^. ])[^\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069/\\]+$"
BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
FALLBACK_TYPE = "application/octet-stream"
# Mail clients parse parts of these types as message structure; an attached message keeps its type
# (docs/decisions/0173).
STRUCTURED = ("multipart/", "message/")
# A second text or HTML would replace the first.
ALTERNATIVE = re.compile(r"text/(?!(plain|html)\s*(;|$))", re.IGNORECASE)
NOT_AN_ALTERNATIVE = serializers.ErrorDetail(
    "An alternative needs a contentType that begins with text/, other than text/plain and text/html, and no contentId.",
    code="invalid_alternative",
)
CALENDAR = re.compile(r"text/calendar\s*(;|$)", re.IGNORECASE)
# The method is a property of the whole calendar, in front of its meetings (RFC 5545, section 3.4).
CALENDAR_METHOD = re.compile(rb"^METHOD:([A-Z]{1,20})\r?$", re.IGNORECASE | re.MULTILINE)
CALENDAR_HEAD_BYTES = 8 * 1024
MAX_TYPE = 255
MESSAGE = re.compile(r"message/rfc822\s*(;|$)", re.IGNORECASE)


@extend_schema_field({"type": "string", "pattern": FILE_NAME})
class FileNameField(TextField):
    default_error_messages = {
        "unsafe": "A filename must not contain a path or control characters, or consist only of dots."
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=255, **options)

    def to_internal_value(self, data: Any) -> str:
        name = super().to_internal_value(data)
        if FORBIDDEN.search(name) or "/" in name or "\\" in name or not name.strip(". "):
            self.fail("unsafe")
        return name


@extend_schema_field({"type": "string", "contentEncoding": "base64", "pattern": BASE64})
class Base64Field(TextField):
    default_error_messages = {"invalid_base64": "This must be base64 (RFC 4648) with padding and without line breaks."}

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # CharField's validators scan the repr of the bytes: 1 s for 10 MiB.
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
    filename = FileNameField(help_text="The name of the file, without a path.")
    content = Base64Field(allow_blank=True, help_text="The content of the file in base64.")
    contentType = TextField(required=False, allow_null=True, allow_blank=True, max_length=MAX_TYPE)
    contentId = TextField(required=False, allow_null=True, max_length=255)
    alternative = StrictBooleanField(
        required=False,
        help_text="Whether the file is another form of the email, beside text and HTML, for mail programs that know "
        "its type, such as an invitation with the contentType `text/calendar`.",
    )

    def validate_contentType(self, content_type: str | None) -> str | None:  # noqa: N802
        if content_type is not None and FORBIDDEN.search(content_type):
            message = "This must not contain line breaks or other control characters."
            raise serializers.ValidationError(message, code="control")
        # A type that does not parse is ignored and guessed from the filename.
        return content_type if content_type and CONTENT_TYPE.fullmatch(content_type) else None

    def validate_contentId(self, content_id: str | None) -> str | None:  # noqa: N802
        if content_id is None or CONTENT_ID.fullmatch(content_id):
            return content_id
        raise serializers.ValidationError(
            "A contentId must consist of alphanumeric characters and @ . - _ only.", code="invalid_content_id"
        )

    def validate(self, attrs: dict[str, Any]) -> File:
        content_type = attrs.get("contentType") or mimetypes.guess_type(attrs["filename"])[0] or FALLBACK_TYPE
        if content_type.lower().startswith(STRUCTURED) and not MESSAGE.match(content_type):
            content_type = FALLBACK_TYPE
        is_alternative = attrs.get("alternative", False)
        if is_alternative and (attrs.get("contentId") or not ALTERNATIVE.match(content_type)):
            raise serializers.ValidationError({"alternative": [NOT_AN_ALTERNATIVE]})
        # CharField passes a blank string through without decoding it.
        data = attrs["content"] or b""
        if is_alternative:
            return File(attrs["filename"], with_method(content_type, data), data, placement=Placement.ALTERNATIVE)
        return File(attrs["filename"], content_type, data, attrs.get("contentId"))


class FilesField(EntriesField):
    """At most 10 files, with at most 10 MiB in total after decoding."""

    child = FileInput()

    def to_internal_value(self, data: Any) -> list[File]:
        if isinstance(data, list) and len(data) > MAX_FILES:
            detail = f"At most {MAX_FILES} attachments are allowed; this email has {len(data)}."
            raise TooManyAttachments(detail, limit=MAX_FILES)
        files: list[File] = super().to_internal_value(data)
        if sum(len(file.data) for file in files) > MAX_TOTAL_BYTES:
            raise too_large()
        return files


def with_method(content_type: str, data: bytes) -> str:
    """Return the type of an alternative; that of a calendar names its method, as RFC 6047, section 2.4, requires.

    Mail programs show an invitation without it as a file.
    """
    if not CALENDAR.match(content_type) or "method=" in content_type.lower():
        return content_type
    method = CALENDAR_METHOD.search(data, 0, CALENDAR_HEAD_BYTES)
    complete = f"{content_type}; method={method[1].decode().upper()}" if method else content_type
    return complete if len(complete) <= MAX_TYPE else content_type


def too_large() -> AttachmentsTooLarge:
    return AttachmentsTooLarge(
        f"Attachments must not exceed {MAX_TOTAL_BYTES:,} bytes in total after decoding.", limit=MAX_TOTAL_BYTES
    )
