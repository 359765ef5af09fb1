"""Emails on the wire: one input per operation, one output per shape."""

import json
from typing import Any

from rest_framework import serializers

from api.fields import ObjectField, StrictSerializer, TextField, WireTimeField
from emails.accept import Draft
from emails.errors import TooManyRecipients
from emails.fields import MAX_SUBJECT_LENGTH, AddressField, AddressListField, BodyField, HeaderField, RecipientsField
from emails.idempotency import MAX_LENGTH
from emails.models import Email, Event, Recipient

MAX_RECIPIENTS = 50
MAX_TAGS = 10
MAX_METADATA_BYTES = 10_000


class SendInput(StrictSerializer):
    """`POST /v1/emails/send`; its validated data is a Draft."""

    locals()["from"] = AddressField()
    to = RecipientsField(min_length=1)
    cc = AddressListField(required=False, default=list)
    bcc = AddressListField(required=False, default=list)
    replyTo = AddressField(required=False, allow_null=True, default=None)  # noqa: N815
    subject = HeaderField(max_length=MAX_SUBJECT_LENGTH)
    html = BodyField(required=False, allow_null=True, default=None)
    text = BodyField(required=False, allow_null=True, default=None)
    tags = serializers.ListField(child=TextField(max_length=255), required=False, default=list, max_length=MAX_TAGS)
    metadata = ObjectField(required=False, allow_null=True, default=None)
    idempotencyKey = TextField(required=False, allow_null=True, max_length=MAX_LENGTH)  # noqa: N815

    def validate_metadata(self, metadata: dict[str, Any] | None) -> dict[str, Any] | None:
        if len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode()) > MAX_METADATA_BYTES:
            raise serializers.ValidationError(f"metadata has more than {MAX_METADATA_BYTES} bytes.", code="max_length")
        return metadata

    def to_internal_value(self, data: Any) -> Any:
        refuse_too_many(data)
        return super().to_internal_value(data)

    def validate(self, attrs: dict[str, Any]) -> Any:
        if not attrs["html"] and not attrs["text"]:
            message = "Give html or text: the email would be empty."
            raise serializers.ValidationError({"html": [serializers.ErrorDetail(message, code="required")]})
        return Draft(
            sender=attrs["from"],
            to=tuple(attrs["to"]),
            cc=tuple(attrs["cc"]),
            bcc=tuple(attrs["bcc"]),
            reply_to=attrs["replyTo"],
            subject=attrs["subject"],
            html=attrs["html"] or "",
            text=attrs["text"] or "",
            tags=tuple(attrs["tags"]),
            metadata=attrs["metadata"],
        )


def refuse_too_many(data: Any) -> None:
    """Raise TooManyRecipients before anybody parses a million addresses."""
    for name in ("to", "cc", "bcc"):
        given = data.get(name) if isinstance(data, dict) else None
        if isinstance(given, list) and len(given) > MAX_RECIPIENTS:
            detail = f"{name} has {len(given)} addresses; an email takes {MAX_RECIPIENTS}."
            raise TooManyRecipients(detail, field=name, limit=MAX_RECIPIENTS)


class RecipientSerializer(serializers.ModelSerializer[Recipient]):
    email = serializers.CharField(source="address")
    type = serializers.CharField(source="kind")
    status = serializers.CharField(source="state")
    sentAt = WireTimeField(source="sent_at")  # noqa: N815
    deliveredAt = WireTimeField(source="delivered_at")  # noqa: N815
    errorMessage = serializers.CharField(source="error_message")  # noqa: N815

    class Meta:
        model = Recipient
        fields = ("email", "type", "status", "sentAt", "deliveredAt", "errorMessage", "reason")


class EmailSerializer(serializers.ModelSerializer[Email]):
    """The detail view."""

    locals()["from"] = serializers.CharField(source="sender")
    to = serializers.CharField(source="addressees")
    htmlContent = serializers.CharField(source="content.html")  # noqa: N815
    text = serializers.CharField(source="content.text")
    createdAt = WireTimeField(source="created_at")  # noqa: N815
    sentAt = WireTimeField(source="sent_at")  # noqa: N815
    deliveredAt = WireTimeField(source="delivered_at")  # noqa: N815
    scheduledFor = WireTimeField(source="scheduled_for")  # noqa: N815
    errorMessage = serializers.CharField(source="error_message")  # noqa: N815
    retryCount = serializers.IntegerField(source="retry_count")  # noqa: N815
    replyTo = serializers.CharField(source="reply_to")  # noqa: N815
    recipients = RecipientSerializer(many=True)

    class Meta:
        model = Email
        fields = (
            "id",
            "to",
            "from",
            "subject",
            "status",
            "htmlContent",
            "text",
            "createdAt",
            "scheduledFor",
            "sentAt",
            "deliveredAt",
            "errorMessage",
            "tags",
            "retryCount",
            "replyTo",
            "cc",
            "bcc",
            "metadata",
            "recipients",
        )


class EventSerializer(serializers.ModelSerializer[Event]):
    eventType = serializers.CharField(source="kind")  # noqa: N815
    createdAt = WireTimeField(source="created_at")  # noqa: N815
    sentToWebhook = serializers.SerializerMethodField()  # noqa: N815

    class Meta:
        model = Event
        fields = ("id", "eventType", "createdAt", "sentToWebhook", "payload")

    def get_sentToWebhook(self, event: Event) -> bool:  # noqa: N802
        """No webhook can be registered yet, so no event has been sent to one."""
        return False
