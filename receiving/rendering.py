"""Rendering of a received email: the resource of the API, which webhooks and the dialects show as well."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.api.fields import AttributesSerializer, CountField, TextListField, UtcDateTimeField
from receiving.links import API_LIFETIME, RAW, download_url, webhook_expiry
from receiving.models import Message, ReceivedEmail
from receiving.source import shown_headers
from receiving.states import BlockedReason, ReceivedStatus

VERDICTS = ["pass", "fail", "softfail", "neutral", "none", "policy", "temperror", "permerror"]


class MailboxSerializer(serializers.Serializer[Any]):
    """An address in a header field."""

    email = serializers.CharField(help_text="The address.")
    name = serializers.CharField(help_text="The display name; empty without one.")


class ReceivedAttachmentSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    filename = serializers.CharField(help_text="The name of the file, without a path; empty without one.")
    contentType = serializers.CharField(help_text="The media type, as the sender declared it.")
    size = CountField(help_text="The size after decoding, in bytes.")
    contentId = serializers.CharField(allow_null=True, help_text="The Content-ID, to which `cid:` in HTML refers.")
    inline = serializers.BooleanField(help_text="Whether the message shows it in its text.")
    method = serializers.CharField(allow_null=True, help_text="The method of a calendar object, such as `REQUEST`.")
    sha256 = serializers.CharField(help_text="The SHA-256 of the decoded bytes, in hexadecimal digits.")
    url = serializers.CharField(help_text="Where the file can be downloaded without a key, until `urlExpiresAt`.")
    urlExpiresAt = UtcDateTimeField(help_text="The end of the URL.")


class ReplyToEmailSerializer(serializers.Serializer[Any]):
    """The sent email that is answered."""

    emailId = serializers.CharField(help_text="The id of the sent email.")
    recipient = serializers.CharField(help_text="The recipient of it that is answered for.")
    matchedBy = serializers.ChoiceField(
        ReceivedEmail.MatchedBy.values, help_text="By the signed reply address, or by a Message-ID of ours."
    )
    fromRecipient = serializers.BooleanField(
        help_text="Whether the message is proven to come from this recipient. Without it the match proves no identity."
    )
    deleted = serializers.BooleanField(required=False, help_text="True once retention has deleted the sent email.")


class SpfSerializer(serializers.Serializer[Any]):
    result = serializers.ChoiceField(VERDICTS, help_text="The result of SPF (RFC 7208).")
    domain = serializers.CharField(help_text="The domain of MAIL FROM or HELO.")


class DkimSerializer(serializers.Serializer[Any]):
    result = serializers.ChoiceField(VERDICTS, help_text="The result of the signature (RFC 6376).")
    domain = serializers.CharField(help_text="The domain that signed.")
    selector = serializers.CharField(help_text="The selector of the key.")


class DmarcSerializer(serializers.Serializer[Any]):
    result = serializers.ChoiceField(VERDICTS, help_text="The result of DMARC (RFC 9989).")
    policy = serializers.CharField(allow_null=True, help_text="The policy of the domain; null without one.")
    domain = serializers.CharField(help_text="The domain of From.")


class ArcSerializer(serializers.Serializer[Any]):
    result = serializers.ChoiceField(VERDICTS, help_text="The result of the ARC chain (RFC 8617), for information.")


class AuthenticationSerializer(serializers.Serializer[Any]):
    """Whether the message is proven to come from the domain of its From."""

    result = serializers.ChoiceField(
        VERDICTS, help_text="`pass` if DMARC passes, or without a policy if SPF or DKIM passes for the domain of From."
    )
    spf = SpfSerializer(help_text="Whether the host may send for the domain of the envelope.")
    dkim = DkimSerializer(many=True, help_text="The signatures, at most ten.")
    dmarc = DmarcSerializer(help_text="Whether SPF or DKIM passes for the domain of From, and its policy.")
    arc = ArcSerializer(help_text="The signatures of forwarding hosts.")


class SpamSerializer(serializers.Serializer[Any]):
    score = serializers.FloatField(help_text="The score of the spam filter.")
    threshold = serializers.FloatField(help_text="The score from which the filter takes it for spam.")
    isSpam = serializers.BooleanField(help_text="Whether the filter takes it for spam.")
    symbols = TextListField(help_text="The rules that applied.")


class RemoteSerializer(serializers.Serializer[Any]):
    """The host that delivered the message."""

    ip = serializers.CharField(allow_null=True, help_text="Its address; null for a simulated message.")
    helo = serializers.CharField(help_text="The name with which it greeted.")
    tls = serializers.CharField(allow_null=True, help_text="The version of TLS; null without it.")


class DownloadSerializer(serializers.Serializer[Any]):
    url = serializers.CharField(help_text="Where the source can be downloaded without a key.")
    urlExpiresAt = UtcDateTimeField(help_text="The end of the URL.")


class ReceivedItemSerializer(AttributesSerializer[ReceivedEmail]):
    """A received email in a list: without text, HTML and headers."""

    id = serializers.CharField()
    status = serializers.ChoiceField(
        ReceivedStatus.values,
        help_text="`stored` until it is read, `processed`, `blocked` by a rule of its route, or `unreadable`.",
    )
    routeId = serializers.CharField(allow_null=True, help_text="The route; null for a reply address without one.")
    recipient = serializers.CharField(help_text="The address that received it: of the envelope, not of a header.")
    tag = serializers.CharField(help_text="The part of the local part after the first plus sign; empty without one.")
    envelopeFrom = serializers.CharField(
        source="message.envelope_from", help_text="The address in MAIL FROM; empty for a delivery report."
    )
    locals()["from"] = serializers.SerializerMethodField("get_sender", help_text="The first address in From.")
    to = serializers.SerializerMethodField(help_text="The addresses in To.")
    cc = serializers.SerializerMethodField(help_text="The addresses in Cc.")
    replyTo = serializers.SerializerMethodField("get_reply_to", help_text="The addresses in Reply-To.")
    subject = serializers.CharField(help_text="The decoded subject.")
    date = UtcDateTimeField(source="message.date", allow_null=True, help_text="The time in Date; null without one.")
    messageId = serializers.SerializerMethodField("get_message_id", help_text="The Message-ID; null without one.")
    inReplyTo = serializers.SerializerMethodField("get_in_reply_to", help_text="The field In-Reply-To.")
    references = TextListField(source="message.references", help_text="The Message-IDs in References, at most 100.")
    attachments = serializers.SerializerMethodField(help_text="The attached files and inline images.")
    replyToEmail = serializers.SerializerMethodField("get_answered", help_text="The sent email that it answers.")
    authentication = serializers.SerializerMethodField(
        help_text="The verdicts about its origin; null before it was read."
    )
    spam = serializers.SerializerMethodField(help_text="The result of the spam filter; null without one.")
    automatic = serializers.ChoiceField(
        Message.Automatic.values,
        source="message.automatic",
        help_text="Whether a program sent it: `no`, `auto_generated`, `auto_replied`, `list` or `bulk`.",
    )
    blockedReason = serializers.SerializerMethodField("get_blocked", help_text="Why it is blocked; null if it is not.")
    parseErrors = TextListField(source="message.parse_errors", help_text="What could not be read, or was repaired.")
    remote = serializers.SerializerMethodField(help_text="The host that delivered it.")
    size = CountField(help_text="The size of the message in bytes.")
    receivedAt = UtcDateTimeField(help_text="The time when it was stored.")
    expiresAt = UtcDateTimeField(help_text="The time when it is deleted.")
    test = serializers.BooleanField(source="is_test", help_text="Whether a test key simulated it.")

    @extend_schema_field(MailboxSerializer(allow_null=True))
    def get_sender(self, email: ReceivedEmail) -> Any:
        return next(iter(email.message.addresses.get("from", ())), None)

    @extend_schema_field(MailboxSerializer(many=True))
    def get_to(self, email: ReceivedEmail) -> Any:
        return email.message.addresses.get("to", [])

    @extend_schema_field(MailboxSerializer(many=True))
    def get_cc(self, email: ReceivedEmail) -> Any:
        return email.message.addresses.get("cc", [])

    @extend_schema_field(MailboxSerializer(many=True))
    def get_reply_to(self, email: ReceivedEmail) -> Any:
        return email.message.addresses.get("replyTo", [])

    def get_message_id(self, email: ReceivedEmail) -> str | None:
        return email.message.message_id or None

    def get_in_reply_to(self, email: ReceivedEmail) -> str | None:
        return email.message.in_reply_to or None

    @extend_schema_field(ReceivedAttachmentSerializer(many=True))
    def get_attachments(self, email: ReceivedEmail) -> Any:
        return ATTACHMENTS.to_representation(
            [
                {**attachment, **self._download(email, number)}
                for number, attachment in enumerate(email.message.attachments)
            ]
        )

    @extend_schema_field(ReplyToEmailSerializer(allow_null=True))
    def get_answered(self, email: ReceivedEmail) -> Any:
        if not email.reply_email_id:
            return None
        answered = {
            "emailId": email.reply_email_id,
            "recipient": email.reply_address,
            "matchedBy": email.reply_matched_by,
            "fromRecipient": email.is_from_recipient,
        }
        is_existing = getattr(email, "answers_existing", True)
        return answered if is_existing else {**answered, "deleted": True}

    @extend_schema_field(AuthenticationSerializer(allow_null=True))
    def get_authentication(self, email: ReceivedEmail) -> Any:
        return email.message.authentication

    @extend_schema_field(SpamSerializer(allow_null=True))
    def get_spam(self, email: ReceivedEmail) -> Any:
        return email.message.spam

    @extend_schema_field({"type": ["string", "null"], "enum": [*BlockedReason.values, None]})
    def get_blocked(self, email: ReceivedEmail) -> str | None:
        return email.blocked_reason or None

    @extend_schema_field(RemoteSerializer())
    def get_remote(self, email: ReceivedEmail) -> Any:
        message = email.message
        return {"ip": message.remote_ip, "helo": message.helo, "tls": message.tls or None}

    def _download(self, email: ReceivedEmail, part: int) -> dict[str, Any]:
        if self.context.get("is_for_webhooks"):
            expires_at = webhook_expiry(email.received_at, store_days=email.store_days)
        else:
            expires_at = min(timezone.now() + API_LIFETIME, email.expires_at)
        return {"url": download_url(email.id, part, expires_at=expires_at), "urlExpiresAt": expires_at}


class ReceivedSerializer(ReceivedItemSerializer):
    """A received email. context: is_for_webhooks, whose URLs are valid for days, and not for an hour from now."""

    text = serializers.CharField(source="message.text", help_text="The plain text, at most 5 MiB.")
    textGenerated = serializers.BooleanField(
        source="message.text_generated", help_text="Whether the text, or a part of it, was made from HTML."
    )
    replyText = serializers.CharField(
        source="message.reply_text",
        allow_null=True,
        help_text="The text without quotes and signatures; null if unknown.",
    )
    html = serializers.CharField(
        source="message.html", help_text="The HTML as received, at most 5 MiB. Do not trust it."
    )
    truncated = TextListField(
        source="message.truncated", help_text="The members that are cut: `text`, `html`, `headers`."
    )
    headers = serializers.SerializerMethodField(help_text="The header fields in their order, as names with values.")
    raw = serializers.SerializerMethodField(help_text="The source of the message.")

    @extend_schema_field({"type": "array", "items": {"type": "array", "items": {"type": "string"}, "minItems": 2}})
    def get_headers(self, email: ReceivedEmail) -> Any:
        return shown_headers(email.message)

    @extend_schema_field(DownloadSerializer(allow_null=True))
    def get_raw(self, email: ReceivedEmail) -> Any:
        return DOWNLOAD.to_representation(self._download(email, RAW))


# Created once: instantiation copies every field, and rendering keeps no state in them.
ATTACHMENTS: Any = ReceivedAttachmentSerializer(many=True)
DOWNLOAD: Any = DownloadSerializer()
RECEIVED_IN_WEBHOOKS: Any = ReceivedSerializer(context={"is_for_webhooks": True})
