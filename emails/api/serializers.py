"""Responses of `/v1/emails`: one output serializer per shape.

The responses of sending serialize the stored body, so that a repeated request gets the same bytes.
"""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.api.fields import (
    AttributesSerializer,
    CountField,
    ObjectField,
    RowSerializer,
    TextListField,
    UtcDateTimeField,
)
from core.lib.ids import to_uuid
from core.workspaces.models import AuditEntry
from emails.accept.insertion import NewEmail
from emails.approvals import ApprovalDecision
from emails.errors import RecipientCapped, RecipientNotAllowed
from emails.models import Attachment, Email, Held, Recipient, TlsOption
from emails.rendered_content import render_email
from emails.sending.reply_address import reply_address
from emails.sending.sending_checks import Wait, find_wait
from emails.states import EmailStatus, WaitCause
from events.kinds import EventKind
from events.models import Event
from suppressions.errors import RecipientSuppressed

HELD = "Until when the email waits for approval; absent if it does not wait for it."
WARNINGS = "Parts of the request that were accepted but may be mistakes."


class SentTimesSerializer(RowSerializer[Any]):
    """The times of an email, and of one of its recipients."""

    sentAt = UtcDateTimeField(
        allow_null=True, help_text="The time at which the next mail server accepted the message; null before that."
    )
    deliveredAt = UtcDateTimeField(
        allow_null=True,
        help_text="The time at which the recipient's mail server accepted the message; null before that.",
    )


class RecipientSerializer(SentTimesSerializer):
    email = serializers.CharField(source="address", help_text="The address of the recipient.")
    type = serializers.ChoiceField(
        Recipient.RecipientType.choices, source="kind", help_text="The field of the email that contains the address."
    )
    status = serializers.ChoiceField(EmailStatus.choices, source="state")
    errorMessage = serializers.CharField(allow_null=True, help_text="The last delivery error; null if there is none.")
    replyAddress = serializers.SerializerMethodField(
        "get_reply_address", help_text="The address in Reply-To, with `replyTracking`; absent without it."
    )
    optional_fields = frozenset({"replyAddress"})

    class Meta:
        model = Recipient
        fields = (
            "email",
            "type",
            "status",
            "sentAt",
            "deliveredAt",
            "errorMessage",
            "reason",
            "receiver",
            "replyAddress",
        )

    def get_reply_address(self, recipient: Recipient) -> str:
        domain = recipient.email.reply_domain
        return reply_address(to_uuid(recipient.id), domain=domain) if domain else ""


class AttachmentSerializer(RowSerializer[Attachment]):
    contentType = serializers.CharField(help_text="The media type of the file.")

    class Meta:
        model = Attachment
        fields = ("filename", "contentType", "size")


class HeldSerializer(AttributesSerializer[Held]):
    """The wait of an email for a person."""

    reason = serializers.ChoiceField(["approval"], help_text="The machine-readable reason. Others may be added.")
    since = UtcDateTimeField(help_text="The time since which the email has waited.")
    expiresAt = UtcDateTimeField(help_text="The time at which the email is cancelled without a decision.")

    def to_representation(self, instance: Held | dict[str, Any]) -> dict[str, Any]:
        # That of a stored response is shown already.
        return instance if isinstance(instance, dict) else super().to_representation(instance)


class EmailRowSerializer(SentTimesSerializer):
    """The fields that the list and the detail view have."""

    locals()["from"] = serializers.CharField(
        source="sender", help_text="The sender: an address of a domain of the workspace, with or without a name."
    )
    to = serializers.CharField(source="addressees", help_text="The To addresses, joined with a comma and a space.")
    createdAt = UtcDateTimeField()
    stream = serializers.CharField(source="named_stream", help_text="The id of the email's stream; absent for `main`.")

    class Meta:
        model = Email


class EmailItemSerializer(EmailRowSerializer):
    """An email in a list."""

    test = serializers.BooleanField(source="is_test", help_text="True for a test email, else absent.")
    held = HeldSerializer(help_text=HELD)
    optional_fields = frozenset({"test", "stream", "held"})

    class Meta(EmailRowSerializer.Meta):
        fields = ("id", "to", "from", "subject", "status", "createdAt", "sentAt", "test", "stream", "held")


class WaitSerializer(serializers.Serializer[Wait]):
    """The reason why an email is not sent now."""

    cause = serializers.ChoiceField(WaitCause.choices, help_text="The machine-readable cause. Others may be added.")
    since = UtcDateTimeField(help_text="The time since which the email has waited for it.")
    detail = serializers.CharField(help_text="An explanation for people: what ends the wait.")
    receiver = serializers.CharField(
        allow_null=True, help_text="With `receiver_pace`, the receiver that takes no more at present, such as `google`."
    )
    perMinute = serializers.FloatField(
        allow_null=True,
        source="per_minute",
        help_text="The messages a minute that leave for the receiver now; null if a connection is waited for.",
    )


WAIT = WaitSerializer()


class EmailSerializer(EmailRowSerializer):
    """The detail view."""

    optional_fields = frozenset({"stream", "sensitive", "contentNotKept", "tls", "held"})

    templateId = serializers.CharField(allow_null=True, help_text="The id of the template; null without one.")
    attachments = AttachmentSerializer(
        source="content.attachments", many=True, default=[], help_text="The attached files and inline images."
    )
    scheduledFor = UtcDateTimeField(
        allow_null=True, help_text="The time at which the email is sent; null if it is sent immediately."
    )
    expiresAt = UtcDateTimeField(
        allow_null=True, help_text="The time after which the email is not sent any more; null without one."
    )
    errorMessage = serializers.CharField(allow_null=True, help_text="The most recent delivery error of any recipient.")
    retryCount = serializers.IntegerField(help_text="The largest number of repeated delivery attempts of a recipient.")
    localeUsed = serializers.CharField(allow_null=True, help_text="The language of the texts; null if it is not known.")
    replyTo = serializers.CharField(allow_null=True, help_text="The address or addresses to which replies go.")
    metadata = ObjectField(
        allow_null=True, help_text="Custom data of your application, returned unchanged. Recipients do not see it."
    )
    headers = serializers.DictField(
        child=serializers.CharField(), help_text="Custom header fields of the message, by name."
    )
    test = serializers.BooleanField(
        source="is_test", help_text="Whether a test key sent the email: nothing is sent, and it does not count."
    )
    recipients = RecipientSerializer(many=True, help_text="All recipients, each with its own status.")
    waitingFor = serializers.SerializerMethodField(
        "get_wait", help_text="What the email waits for; null while it waits for nothing but its scheduled time."
    )

    tls = serializers.ChoiceField(
        TlsOption.choices,
        help_text="`required` if the email is sent only over TLS to a verified mail host; absent if the request had no "
        "`tls`.",
    )
    held = HeldSerializer(help_text=HELD)
    sensitive = serializers.BooleanField(
        help_text="Whether nobody can read the content, and it is removed after the last outcome; absent if not."
    )
    contentNotKept = serializers.SerializerMethodField(
        "get_content_not_kept",
        help_text="True if `htmlContent`, `text` and `attachments` are empty because the content is not kept.",
    )

    class Meta(EmailRowSerializer.Meta):
        fields = (
            "id", "to", "from", "subject", "status", "createdAt", "scheduledFor", "expiresAt", "sentAt", "deliveredAt",
            "errorMessage", "tags", "retryCount", "replyTo", "cc", "bcc", "metadata", "templateId", "headers",
            "attachments", "test", "recipients", "stream", "waitingFor", "locale", "localeUsed", "sensitive",
            "contentNotKept", "tls", "held",
        )  # fmt: skip

    @extend_schema_field(WaitSerializer(allow_null=True))
    def get_wait(self, email: Email) -> Any:
        wait = find_wait(email)
        return WAIT.to_representation(wait) if wait else None

    def get_content_not_kept(self, email: Email) -> bool:
        return not email.keeps_content

    def to_representation(self, instance: Email) -> dict[str, Any]:
        # Rendered once for both fields; an email with a template stores no text.
        content = render_email(instance)
        values = {**super().to_representation(instance), "htmlContent": content.html, "text": content.text}
        return values if instance.keeps_content else {**values, "attachments": []}


class EventSerializer(RowSerializer[Event]):
    eventType = serializers.ChoiceField(EventKind.choices, source="kind", help_text="The type of the event.")
    createdAt = UtcDateTimeField(help_text="The time of the event.")
    sentToWebhook = serializers.BooleanField(help_text="Whether a webhook endpoint accepted the event.")
    payload = ObjectField(source="shown_payload", help_text="The details of the event, which depend on its type.")

    class Meta:
        model = Event
        fields = ("id", "eventType", "createdAt", "sentToWebhook", "payload")


class TimelineSerializer(serializers.Serializer[Any]):
    locals()["data"] = EventSerializer(many=True, help_text="The events, oldest first.")


class SentAttachmentSerializer(serializers.Serializer[Any]):
    """A file of a sent email."""

    id = serializers.CharField()
    filename = serializers.CharField(help_text="The name of the file, without a path.")
    contentType = serializers.CharField(help_text="The media type of the file.")
    size = CountField(help_text="The size after decoding, in bytes.")
    contentId = serializers.CharField(allow_null=True, help_text="The Content-ID of an inline image.")
    url = serializers.CharField(help_text="Where the file can be downloaded without a key, until `urlExpiresAt`.")
    urlExpiresAt = UtcDateTimeField(help_text="The end of the URL.")


class SentAttachmentsSerializer(serializers.Serializer[Any]):
    locals()["data"] = SentAttachmentSerializer(many=True, help_text="The attached files and inline images.")


class WarningSerializer(serializers.Serializer[Any]):
    """A part of the request that was accepted but may be a mistake."""

    code = serializers.CharField(help_text="The machine-readable code of the warning.")
    message = serializers.CharField(help_text="An explanation for people.")
    variables = TextListField(required=False, help_text="The names of the template's variables without a value.")
    variable = serializers.CharField(required=False, help_text="The name of the variable.")
    indexes = serializers.ListField(
        child=serializers.IntegerField(),
        required=False,
        help_text="The indexes of the recipients in the request, from 0.",
    )
    locale = serializers.CharField(required=False, help_text="The language that the template lacks.")


class AcceptedSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    status = serializers.ChoiceField([EmailStatus.QUEUED.value, EmailStatus.SCHEDULED.value])
    createdAt = UtcDateTimeField()
    held = HeldSerializer(required=False, help_text=HELD)
    warnings = WarningSerializer(many=True, required=False)


class DryRunSerializer(serializers.Serializer[NewEmail]):
    valid = serializers.BooleanField(
        read_only=True, default=True, help_text="Always true; an invalid request returns an error."
    )
    subject = serializers.CharField(source="rendered.subject", help_text="The rendered subject.")
    html = serializers.CharField(source="rendered.html", help_text="The rendered HTML.")
    text = serializers.CharField(source="rendered.text", help_text="The rendered text.")
    warnings = WarningSerializer(many=True)


class BatchEmailSerializer(serializers.Serializer[Any]):
    index = serializers.IntegerField(help_text="The index of the recipient in the request, from 0.")
    to = serializers.CharField(help_text="The recipient: an address, with or without a name.")
    id = serializers.CharField()


class BatchRejectionSerializer(serializers.Serializer[Any]):
    index = serializers.IntegerField(help_text="The index of the recipient in the request, from 0.")
    to = serializers.CharField(help_text="The recipient: an address, with or without a name.")
    code = serializers.ChoiceField(
        [RecipientSuppressed.code, RecipientNotAllowed.code, RecipientCapped.code],
        help_text="The reason for the rejection.",
    )
    retryAt = UtcDateTimeField(
        required=False, help_text="The time from which a capped recipient may get an email; absent of others."
    )


class BatchAcceptedSerializer(serializers.Serializer[Any]):
    queued = serializers.IntegerField(help_text="The number of accepted emails.")
    ids = TextListField(help_text="The ids of the accepted emails, in the order of the request.")
    emails = BatchEmailSerializer(many=True, help_text="The accepted emails, in the order of the request.")
    rejected = BatchRejectionSerializer(
        many=True, help_text="The recipients that are suppressed, not allowed or capped. They get no email."
    )
    held = HeldSerializer(required=False, help_text="Until when the emails wait for approval; absent if they do not.")
    warnings = WarningSerializer(many=True, required=False)


class RescheduledSerializer(AttributesSerializer[Email]):
    id = serializers.CharField()
    status = serializers.ChoiceField(EmailStatus.values)
    createdAt = UtcDateTimeField()
    scheduledFor = UtcDateTimeField(help_text="The time at which the email is sent; null if it is sent immediately.")
    expiresAt = UtcDateTimeField(
        allow_null=True, help_text="The time after which the email is not sent any more; null without one."
    )


class CancelledSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    status = serializers.ChoiceField(
        [EmailStatus.CANCELLED.value],
        read_only=True,
        default=EmailStatus.CANCELLED.value,
    )


class ApproverSerializer(serializers.Serializer[Any]):
    """Who decided about an email."""

    kind = serializers.ChoiceField(AuditEntry.ActorKind.choices, help_text="The kind of the approver.")
    name = serializers.CharField(help_text="The address of a person, or the name of a key.")


class DecisionSerializer(AttributesSerializer[ApprovalDecision]):
    """A decision about an email that waited for approval."""

    decision = serializers.ChoiceField(["approved", "rejected"], help_text="What was decided.")
    by = ApproverSerializer(help_text="Who decided.")
    decidedAt = UtcDateTimeField(help_text="The time of the decision.")
    reason = serializers.CharField(help_text="The reason of a rejection; absent without one.")
    optional_fields = frozenset({"reason"})


class DecidedSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="email.id")
    status = serializers.ChoiceField(EmailStatus.values, source="email.status")
    decision = DecisionSerializer(help_text="The decision that was made.")


class StatsSerializer(serializers.Serializer[Any]):
    """Queue statistics: every recipient is counted once."""

    waiting = CountField(help_text="Recipients that are due.")
    active = CountField(help_text="Recipients that a worker is sending to.")
    delayed = CountField(help_text="Recipients that are scheduled or wait for a retry.")
    completed = CountField(
        help_text="Recipients whose message was accepted by the next mail server, since the workspace was created."
    )
    failed = CountField(help_text="Recipients that bounced or failed, since the workspace was created.")
    paused = CountField(help_text="Recipients that wait because the workspace is suspended.")
