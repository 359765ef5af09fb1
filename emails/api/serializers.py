"""Responses of `/v1/emails`: one output serializer per shape."""

from typing import Any

from rest_framework import serializers

from api.fields import ObjectField, UtcDateTimeField
from emails.models import Attachment, Email, Event, Recipient
from emails.rendered_content import render_email
from emails.states import EmailStatus


class RecipientSerializer(serializers.ModelSerializer[Recipient]):
    email = serializers.CharField(source="address")
    type = serializers.ChoiceField(Recipient.RecipientType.choices, source="kind")
    status = serializers.ChoiceField(EmailStatus.choices, source="state")
    sentAt = UtcDateTimeField(source="sent_at", allow_null=True)  # noqa: N815
    deliveredAt = UtcDateTimeField(source="delivered_at", allow_null=True)  # noqa: N815
    errorMessage = serializers.CharField(source="error_message", allow_null=True)  # noqa: N815

    class Meta:
        model = Recipient
        fields = ("email", "type", "status", "sentAt", "deliveredAt", "errorMessage", "reason")


class AttachmentSerializer(serializers.ModelSerializer[Attachment]):
    contentType = serializers.CharField(source="content_type")  # noqa: N815

    class Meta:
        model = Attachment
        fields = ("filename", "contentType", "size")


class EmailItemSerializer(serializers.ModelSerializer[Email]):
    """An email in a list."""

    locals()["from"] = serializers.CharField(source="sender")
    to = serializers.CharField(source="addressees")
    createdAt = UtcDateTimeField(source="created_at")  # noqa: N815
    sentAt = UtcDateTimeField(source="sent_at", allow_null=True)  # noqa: N815

    class Meta:
        model = Email
        fields = ("id", "to", "from", "subject", "status", "createdAt", "sentAt")


class EmailSerializer(serializers.ModelSerializer[Email]):
    """The detail view."""

    locals()["from"] = serializers.CharField(source="sender")
    to = serializers.CharField(source="addressees")
    templateId = serializers.CharField(source="template_id", allow_null=True)  # noqa: N815
    attachments = AttachmentSerializer(source="content.attachments", many=True, default=[])
    createdAt = UtcDateTimeField(source="created_at")  # noqa: N815
    sentAt = UtcDateTimeField(source="sent_at", allow_null=True)  # noqa: N815
    deliveredAt = UtcDateTimeField(source="delivered_at", allow_null=True)  # noqa: N815
    scheduledFor = UtcDateTimeField(source="scheduled_for", allow_null=True)  # noqa: N815
    errorMessage = serializers.CharField(source="error_message", allow_null=True)  # noqa: N815
    retryCount = serializers.IntegerField(source="retry_count")  # noqa: N815
    replyTo = serializers.CharField(source="reply_to", allow_null=True)  # noqa: N815
    metadata = ObjectField(allow_null=True)
    headers = serializers.DictField(child=serializers.CharField())
    recipients = RecipientSerializer(many=True)

    class Meta:
        model = Email
        fields = (
            "id",
            "to",
            "from",
            "subject",
            "status",
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
            "templateId",
            "headers",
            "attachments",
            "recipients",
        )

    def to_representation(self, instance: Email) -> dict[str, Any]:
        # Rendered once for both fields; an email with a template stores no text.
        content = render_email(instance)
        return {**super().to_representation(instance), "htmlContent": content.html, "text": content.text}


class EventSerializer(serializers.ModelSerializer[Event]):
    eventType = serializers.ChoiceField(Event.EventKind.choices, source="kind")  # noqa: N815
    createdAt = UtcDateTimeField(source="created_at")  # noqa: N815
    sentToWebhook = serializers.BooleanField(source="sent_to_webhook")  # noqa: N815
    payload = ObjectField()

    class Meta:
        model = Event
        fields = ("id", "eventType", "createdAt", "sentToWebhook", "payload")


class StatsSerializer(serializers.Serializer[Any]):
    """Queue statistics: every recipient is counted once."""

    waiting = serializers.IntegerField(min_value=0)
    active = serializers.IntegerField(min_value=0)
    delayed = serializers.IntegerField(min_value=0)
    completed = serializers.IntegerField(min_value=0)
    failed = serializers.IntegerField(min_value=0)
    paused = serializers.IntegerField(min_value=0)
