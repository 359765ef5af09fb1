"""What requests about emails may say: one serializer per operation."""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from rest_framework import serializers
from rest_framework.fields import empty

from api.fields import AddressField, ObjectField, StrictBooleanField, StrictSerializer, TextField
from emails.accept.drafts import BatchDraft, BatchRecipient, Draft
from emails.accept.idempotency import MAX_LENGTH
from emails.api.attachments import FilesField
from emails.api.fields import (
    MAX_SUBJECT_LENGTH,
    AddressListField,
    BodyField,
    HeaderField,
    HeadersField,
    MomentField,
    RecipientsField,
)
from emails.errors import TooManyRecipients
from lib.email_addresses import InvalidAddress, parse_address

MAX_RECIPIENTS = 50
MAX_BATCH = 500
MAX_TAGS = 10
MAX_METADATA_BYTES = 10_000
MAX_AHEAD = timedelta(days=30)
PLAIN_RECIPIENT = {"to": str, "templateData": dict}


class MetadataField(ObjectField):
    default_error_messages = {"too_large": f"metadata has more than {MAX_METADATA_BYTES:,} bytes."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        metadata: dict[str, Any] = super().to_internal_value(data)
        if len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode()) > MAX_METADATA_BYTES:
            self.fail("too_large")
        return metadata


class ScheduleField(MomentField):
    """A moment later than now and at most 30 days ahead."""

    default_error_messages = {
        "in_past": "This moment has passed; leave scheduledFor out to send now.",
        "too_far": "This is more than 30 days ahead.",
    }

    def to_internal_value(self, data: Any) -> Any:
        moment = super().to_internal_value(data)
        now = datetime.now(UTC)
        if moment <= now:
            self.fail("in_past")
        if moment > now + MAX_AHEAD:
            self.fail("too_far")
        return moment


class TagsField(serializers.ListField):
    child = TextField(max_length=255)

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_TAGS, **options)


class _Shared(StrictSerializer):
    """The fields that send and batch have in common."""

    locals()["from"] = AddressField()
    replyTo = AddressField(required=False, allow_null=True)  # noqa: N815
    tags = TagsField(required=False)
    metadata = MetadataField(required=False, allow_null=True)
    scheduledFor = ScheduleField(required=False, allow_null=True)  # noqa: N815
    idempotencyKey = TextField(required=False, allow_null=True, max_length=MAX_LENGTH)  # noqa: N815

    def shared(self, values: dict[str, Any]) -> dict[str, Any]:
        return {
            "sender": values["from"],
            "reply_to": values.get("replyTo"),
            "tags": tuple(values.get("tags") or ()),
            "metadata": values.get("metadata"),
            "scheduled_for": values.get("scheduledFor"),
        }


class SendInput(_Shared):
    """`POST /v1/emails/send`; its validated data is a Draft, and whether it is a dry run."""

    to = RecipientsField(min_length=1)
    cc = AddressListField(required=False, allow_null=True)
    bcc = AddressListField(required=False, allow_null=True)
    subject = HeaderField(max_length=MAX_SUBJECT_LENGTH, required=False, allow_null=True)
    html = BodyField(required=False, allow_null=True)
    text = BodyField(required=False, allow_null=True)
    templateId = TextField(required=False, allow_null=True, max_length=100)  # noqa: N815
    templateData = ObjectField(required=False, allow_null=True)  # noqa: N815
    headers = HeadersField(required=False, allow_null=True)
    attachments = FilesField(required=False, allow_null=True)
    trackOpens = StrictBooleanField(required=False, default=True)  # noqa: N815
    trackClicks = StrictBooleanField(required=False, default=True)  # noqa: N815
    dryRun = StrictBooleanField(required=False, default=False)  # noqa: N815

    def to_internal_value(self, data: Any) -> Any:
        for name in ("to", "cc", "bcc"):
            _refuse_too_many(data, name, limit=MAX_RECIPIENTS)
        return super().to_internal_value(data)

    def validate(self, attrs: dict[str, Any]) -> tuple[Draft, bool]:
        _refuse_empty(attrs)
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
    to = AddressField()
    templateData = ObjectField(required=False, allow_null=True)  # noqa: N815
    metadata = MetadataField(required=False, allow_null=True)

    # What nearly every recipient is, without a field's way through the framework, 500 times a batch.
    def run_validation(self, data: Any = empty) -> Any:
        if isinstance(data, dict) and {name: type(value) for name, value in data.items()} == PLAIN_RECIPIENT:
            with suppress(InvalidAddress):
                return {**data, "to": parse_address(data["to"])}
        return super().run_validation(data)


class BatchInput(_Shared):
    """`POST /v1/emails/batch`; its validated data is a BatchDraft."""

    templateId = TextField(max_length=100)  # noqa: N815
    subject = HeaderField(max_length=MAX_SUBJECT_LENGTH, required=False, allow_null=True)
    recipients = serializers.ListField(child=BatchRecipientInput(), min_length=1)

    def to_internal_value(self, data: Any) -> Any:
        _refuse_too_many(data, "recipients", limit=MAX_BATCH)
        return super().to_internal_value(data)

    def validate(self, attrs: dict[str, Any]) -> BatchDraft:
        recipients = (
            BatchRecipient(item["to"], item.get("templateData") or {}, item.get("metadata"))
            for item in attrs["recipients"]
        )
        return BatchDraft(
            template=attrs["templateId"],
            recipients=tuple(recipients),
            subject=attrs.get("subject"),
            **self.shared(attrs),
        )


class ResendInput(StrictSerializer):
    """`POST /v1/emails/:id/resend` takes a key at most: an ignored `scheduledFor` would send at once."""

    idempotencyKey = TextField(required=False, allow_null=True, max_length=MAX_LENGTH)  # noqa: N815


class RescheduleInput(StrictSerializer):
    scheduledFor = ScheduleField(allow_null=True)  # noqa: N815


def _refuse_empty(values: dict[str, Any]) -> None:
    """An email needs content and a subject, unless a template brings them."""
    if values.get("templateId"):
        return
    missing = {}
    if not values.get("html") and not values.get("text"):
        missing["html"] = [
            serializers.ErrorDetail("Give html, text or templateId: the email would be empty.", "required")
        ]
    if values.get("subject") is None:
        missing["subject"] = [serializers.ErrorDetail("This field is required without a templateId.", "required")]
    if missing:
        raise serializers.ValidationError(missing)


def _refuse_too_many(data: Any, name: str, *, limit: int) -> None:
    """Raise TooManyRecipients before anybody parses a million addresses."""
    given = data.get(name) if isinstance(data, dict) else None
    if isinstance(given, list) and len(given) > limit:
        detail = f"{name} has {len(given):,} entries; this call takes {limit}."
        raise TooManyRecipients(detail, field=name, limit=limit)
