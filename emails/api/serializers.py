"""Responses of `/v1/emails`: one output serializer per shape.

The responses of sending serialize the stored body, so that a repeated request gets the same bytes.
"""

from typing import Any

from rest_framework import serializers

from api.fields import ObjectField, UtcDateTimeField
from emails.accept.checks import CheckedEmail
from emails.models import Attachment, Email, Recipient
from emails.rendered_content import render_email
from emails.states import EmailStatus
from events.kinds import EventKind
from events.models import Event
from suppressions.errors import RecipientSuppressed


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
        extra_kwargs = {"size": {"help_text": "The size after decoding, in bytes."}}


class EmailItemSerializer(serializers.ModelSerializer[Email]):
    """An email in a list."""

    locals()["from"] = serializers.CharField(source="sender")
    to = serializers.CharField(source="addressees")
    createdAt = UtcDateTimeField(source="created_at")  # noqa: N815
    sentAt = UtcDateTimeField(source="sent_at", allow_null=True)  # noqa: N815
    test = serializers.BooleanField(source="is_test", help_text="True for a test email, else absent.")
    optional_fields = frozenset({"test"})

    class Meta:
        model = Email
        fields = ("id", "to", "from", "subject", "status", "createdAt", "sentAt", "test")

    def to_representation(self, instance: Email) -> dict[str, Any]:
        fields = super().to_representation(instance)
        return fields if instance.is_test else {name: value for name, value in fields.items() if name != "test"}


class EmailSerializer(serializers.ModelSerializer[Email]):
    """The detail view."""

    locals()["from"] = serializers.CharField(source="sender")
    to = serializers.CharField(source="addressees", help_text="The To addresses, joined with a comma and a space.")
    templateId = serializers.CharField(source="template_id", allow_null=True)  # noqa: N815
    attachments = AttachmentSerializer(source="content.attachments", many=True, default=[])
    createdAt = UtcDateTimeField(source="created_at")  # noqa: N815
    sentAt = UtcDateTimeField(source="sent_at", allow_null=True)  # noqa: N815
    deliveredAt = UtcDateTimeField(source="delivered_at", allow_null=True)  # noqa: N815
    scheduledFor = UtcDateTimeField(source="scheduled_for", allow_null=True)  # noqa: N815
    errorMessage = serializers.CharField(  # noqa: N815
        source="error_message", allow_null=True, help_text="The most recent delivery error of any recipient."
    )
    retryCount = serializers.IntegerField(source="retry_count")  # noqa: N815
    replyTo = serializers.CharField(source="reply_to", allow_null=True)  # noqa: N815
    metadata = ObjectField(allow_null=True)
    headers = serializers.DictField(child=serializers.CharField())
    test = serializers.BooleanField(source="is_test")
    recipients = RecipientSerializer(many=True)

    class Meta:
        model = Email
        fields = (
            "id", "to", "from", "subject", "status", "createdAt", "scheduledFor", "sentAt", "deliveredAt",
            "errorMessage", "tags", "retryCount", "replyTo", "cc", "bcc", "metadata", "templateId", "headers",
            "attachments", "test", "recipients",
        )  # fmt: skip

    def to_representation(self, instance: Email) -> dict[str, Any]:
        # Rendered once for both fields; an email with a template stores no text.
        content = render_email(instance)
        return {**super().to_representation(instance), "htmlContent": content.html, "text": content.text}


class EventSerializer(serializers.ModelSerializer[Event]):
    eventType = serializers.ChoiceField(EventKind.choices, source="kind")  # noqa: N815
    createdAt = UtcDateTimeField(source="created_at")  # noqa: N815
    sentToWebhook = serializers.BooleanField(  # noqa: N815
        source="sent_to_webhook", help_text="Whether a webhook endpoint accepted the event."
    )
    payload = ObjectField()

    class Meta:
        model = Event
        fields = ("id", "eventType", "createdAt", "sentToWebhook", "payload")


class TimelineSerializer(serializers.Serializer[Any]):
    locals()["data"] = EventSerializer(many=True)


class WarningSerializer(serializers.Serializer[Any]):
    """A part of the request that was accepted but may be a mistake."""

    code = serializers.CharField()
    message = serializers.CharField()
    variables = serializers.ListField(child=serializers.CharField(), required=False)
    variable = serializers.CharField(required=False)
    indexes = serializers.ListField(child=serializers.IntegerField(), required=False)


class AcceptedSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    status = serializers.ChoiceField([EmailStatus.QUEUED.value, EmailStatus.SCHEDULED.value])
    createdAt = UtcDateTimeField()  # noqa: N815
    warnings = WarningSerializer(many=True, required=False)


class DryRunSerializer(serializers.Serializer[CheckedEmail]):
    valid = serializers.BooleanField(read_only=True, default=True)
    subject = serializers.CharField(source="rendered.subject")
    html = serializers.CharField(source="rendered.html")
    text = serializers.CharField(source="rendered.text")
    warnings = WarningSerializer(many=True)


class BatchEmailSerializer(serializers.Serializer[Any]):
    index = serializers.IntegerField(help_text="The index of the recipient in the request, from 0.")
    to = serializers.CharField()
    id = serializers.CharField()


class BatchRejectionSerializer(serializers.Serializer[Any]):
    index = serializers.IntegerField(help_text="The index of the recipient in the request, from 0.")
    to = serializers.CharField()
    code = serializers.ChoiceField([RecipientSuppressed.code])


class BatchAcceptedSerializer(serializers.Serializer[Any]):
    queued = serializers.IntegerField(help_text="The number of accepted emails.")
    ids = serializers.ListField(child=serializers.CharField())
    emails = BatchEmailSerializer(many=True)
    rejected = BatchRejectionSerializer(many=True)
    warnings = WarningSerializer(many=True, required=False)


class RescheduledSerializer(serializers.Serializer[Email]):
    id = serializers.CharField()
    status = serializers.ChoiceField(EmailStatus.values)
    createdAt = UtcDateTimeField(source="created_at")  # noqa: N815
    scheduledFor = UtcDateTimeField(source="scheduled_for")  # noqa: N815


class CancelledSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    status = serializers.ChoiceField([EmailStatus.CANCELLED.value], read_only=True, default=EmailStatus.CANCELLED.value)


class StatsSerializer(serializers.Serializer[Any]):
    """Queue statistics: every recipient is counted once."""

    waiting = serializers.IntegerField(min_value=0)
    active = serializers.IntegerField(min_value=0)
    delayed = serializers.IntegerField(min_value=0)
    completed = serializers.IntegerField(min_value=0)
    failed = serializers.IntegerField(min_value=0)
    paused = serializers.IntegerField(min_value=0)
