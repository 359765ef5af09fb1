"""Requests of `/v1/emails`: one input serializer per operation."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from api.fields import (
    AddressField,
    EntriesField,
    FieldErrors,
    ObjectField,
    RecipientField,
    StrictBooleanField,
    StrictSerializer,
    TextField,
)
from emails.accept.drafts import BatchDraft, BatchRecipientDraft, Draft
from emails.accept.idempotency import MAX_LENGTH
from emails.api.attachments import FilesField
from emails.api.fields import (
    MAX_RECIPIENTS,
    MAX_SUBJECT_LENGTH,
    AddressListField,
    BodyField,
    DateTimeField,
    HeaderField,
    HeadersField,
    RecipientsField,
    ReplyToField,
)
from emails.errors import TooManyRecipients

MAX_BATCH = 500
MAX_TAGS = 10
MAX_METADATA_BYTES = 10_000
MAX_AHEAD = timedelta(days=30)


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
        "in_past": "scheduledFor is in the past. Omit it to send immediately.",
        "too_far": "scheduledFor must be at most 30 days ahead.",
    }

    def to_internal_value(self, data: Any) -> Any:
        scheduled_for = super().to_internal_value(data)
        now = datetime.now(UTC)
        if scheduled_for <= now:
            self.fail("in_past")
        if scheduled_for > now + MAX_AHEAD:
            self.fail("too_far")
        return scheduled_for


class TagsField(EntriesField):
    # Some providers send tags as headers.
    child = HeaderField(max_length=255)

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_TAGS, **options)


class _SharedInput(StrictSerializer):
    """The fields shared by send and batch."""

    locals()["from"] = AddressField()
    replyTo = ReplyToField(required=False, allow_null=True)  # noqa: N815
    tags = TagsField(required=False)
    metadata = MetadataField(
        required=False, allow_null=True, help_text=f"Custom data, at most {MAX_METADATA_BYTES:,} bytes."
    )
    scheduledFor = ScheduleField(  # noqa: N815
        required=False, allow_null=True, help_text="A time in the future, at most 30 days ahead."
    )
    idempotencyKey = TextField(  # noqa: N815
        required=False, allow_null=True, max_length=MAX_LENGTH, help_text="Each key accepts one request per workspace."
    )

    def shared(self, values: dict[str, Any]) -> dict[str, Any]:
        return {
            "sender": values["from"],
            "reply_to": tuple(values.get("replyTo") or ()),
            "tags": tuple(values.get("tags") or ()),
            "metadata": values.get("metadata"),
            "scheduled_for": values.get("scheduledFor"),
        }


class SendInput(_SharedInput):
    """`POST /v1/emails/send`. The validated data is a Draft, and whether it is a dry run."""

    to = RecipientsField()
    cc = AddressListField(required=False, allow_null=True)
    bcc = AddressListField(required=False, allow_null=True)
    subject = HeaderField(max_length=MAX_SUBJECT_LENGTH, required=False, allow_null=True)
    html = BodyField(required=False, allow_null=True)
    text = BodyField(required=False, allow_null=True)
    templateId = TextField(  # noqa: N815
        required=False, allow_null=True, max_length=100, help_text="A template's id or alias."
    )
    templateData = ObjectField(required=False, allow_null=True)  # noqa: N815
    headers = HeadersField(required=False, allow_null=True)
    attachments = FilesField(required=False, allow_null=True)
    trackOpens = StrictBooleanField(required=False, default=True)  # noqa: N815
    trackClicks = StrictBooleanField(required=False, default=True)  # noqa: N815
    dryRun = StrictBooleanField(  # noqa: N815
        required=False, default=False, help_text="Check the request without sending."
    )

    def to_internal_value(self, data: Any) -> Any:
        for name in ("to", "cc", "bcc", "replyTo"):
            _refuse_too_many(data, name, limit=MAX_RECIPIENTS)
        return super().to_internal_value(data)

    def combination_errors(self, data: Mapping[str, Any]) -> FieldErrors:
        """Require content and a subject, unless a template provides them."""
        if data.get("templateId"):
            return {}
        missing = {}
        if data.get("subject") is None:
            missing["subject"] = [_required("This field is required without templateId.")]
        if not data.get("html") and not data.get("text"):
            missing["html"] = [_required("Provide html, text or templateId.")]
        return missing

    def validate(self, attrs: dict[str, Any]) -> tuple[Draft, bool]:
        draft = Draft(
            to=tuple(attrs["to"]),
            cc=tuple(attrs.get("cc") or ()),
            bcc=tuple(attrs.get("bcc") or ()),
            subject=attrs.get("subject"),
            html=attrs.get("html") or "",
            text=attrs.get("text") or "",
            template=attrs.get("templateId"),
            template_data=attrs.get("templateData"),
            headers=attrs.get("headers") or {},
            files=tuple(attrs.get("attachments") or ()),
            track_opens=attrs["trackOpens"],
            track_clicks=attrs["trackClicks"],
            **self.shared(attrs),
        )
        return draft, attrs["dryRun"]


class BatchRecipientInput(StrictSerializer):
    to = RecipientField()
    templateData = ObjectField(required=False, allow_null=True)  # noqa: N815
    metadata = MetadataField(required=False, allow_null=True)


class BatchInput(_SharedInput):
    """`POST /v1/emails/batch`. The validated data is a BatchDraft."""

    templateId = TextField(max_length=100, help_text="A template's id or alias.")  # noqa: N815
    subject = HeaderField(
        max_length=MAX_SUBJECT_LENGTH,
        required=False,
        allow_null=True,
        help_text="Overrides the template's subject and is rendered the same way.",
    )
    recipients = EntriesField(child=BatchRecipientInput(), min_length=1)

    def to_internal_value(self, data: Any) -> Any:
        _refuse_too_many(data, "recipients", limit=MAX_BATCH)
        _refuse_too_many(data, "replyTo", limit=MAX_RECIPIENTS)
        return super().to_internal_value(data)

    def validate(self, attrs: dict[str, Any]) -> BatchDraft:
        recipients = (
            BatchRecipientDraft(item["to"], item.get("templateData") or {}, item.get("metadata"))
            for item in attrs["recipients"]
        )
        return BatchDraft(
            template=attrs["templateId"],
            recipients=tuple(recipients),
            subject=attrs.get("subject"),
            **self.shared(attrs),
        )


class ResendInput(StrictSerializer):
    """`POST /v1/emails/:id/resend`. Only a key is allowed: ignoring `scheduledFor` would send immediately."""

    idempotencyKey = TextField(required=False, allow_null=True, max_length=MAX_LENGTH)  # noqa: N815


class RescheduleInput(StrictSerializer):
    scheduledFor = ScheduleField(allow_null=True)  # noqa: N815


def _required(message: str) -> serializers.ErrorDetail:
    return serializers.ErrorDetail(message, code="required")


def _refuse_too_many(data: Any, name: str, *, limit: int) -> None:
    """Raise TooManyRecipients before a million addresses are parsed."""
    entries = data.get(name) if isinstance(data, dict) else None
    if isinstance(entries, list) and len(entries) > limit:
        detail = f"{name} has {len(entries):,} entries. At most {limit} are allowed."
        raise TooManyRecipients(detail, field=name, limit=limit)
