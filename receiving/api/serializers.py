"""Requests and responses of `/v1/inbound`."""

from typing import Any

from django.conf import settings
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.api.fields import (
    ADDRESS_SCHEMA,
    AllOptional,
    AttributesSerializer,
    CountField,
    EntriesField,
    NameField,
    NumberField,
    OptionField,
    RowSerializer,
    StrictBooleanField,
    StrictSerializer,
    TextField,
    TextListField,
    UtcDateTimeField,
    WholeNumberField,
    help_texts,
)
from core.lib.email_addresses import InvalidAddress, parse_address, parse_recipient
from core.lib.translation import translate
from domains.names import InvalidDomainName, to_a_label
from receiving.arrival.patterns import MAX_LENGTH, MAX_STARS, InvalidPattern, parse_pattern
from receiving.links import API_LIFETIME, RAW, download_url, webhook_expiry
from receiving.models import SHARED, Forward, InboundRoute, Message, ReceivedEmail, SenderBlock
from receiving.states import BlockedReason, ReceivedStatus

MAX_WEBHOOK_IDS = 10
MAX_TARGETS = 5
MAX_ADDRESS = 320
MAX_RAW_BYTES = 5 * 1024 * 1024
VERDICTS = ["pass", "fail", "softfail", "neutral", "none", "policy", "temperror", "permerror"]

ROUTE_TEXTS = {
    "name": "The name of the route.",
    "domain": "A receiving domain of the workspace, or `shared` for its address at the domain of the service.",
    "match": "The local parts that match, in lower case: literals, `?` for one character and `*` for any, such as "
    "`support*`.",
    "priority": "Routes with a lower number come first; then those with more literal characters; then older ones.",
    "action": "`deliver`; `reject` refuses the recipient; `discard` accepts the message and keeps nothing.",
    "webhookIds": "The webhooks that get `received`; empty for all that subscribe to it.",
    "forwardTo": "The addresses to which email is forwarded, at most 5. Each one has to confirm it first: with "
    "`forward_not_confirmed`, a link was sent to it.",
    "attachments": "Whether attachments are links or part of the body, in formats that allow both.",
    "includeRaw": "Whether the source of the message is part of the body, in formats that have it.",
    "requireAuthenticated": "Whether a message is blocked unless it is proven to come from the domain of its From.",
    "spamAbove": "The lowest spam score with which a message is blocked; null for none.",
    "repliesOnly": "Whether a message is blocked unless it answers an email of the workspace.",
    "storeDays": "The days for which messages are kept; null for as long as the plan allows, 0 until they are "
    "delivered.",
    "active": "Whether the route is used.",
    "createdAt": "The time when the route was created.",
}


# PATTERN of receiving.arrival.patterns in the syntax of ECMAScript, with at most MAX_STARS stars.
LITERALS = r"[^\u0000-\u0020\"(),:;<>@\[\\\]\u007f*]*"
GLOB_SCHEMA: dict[str, Any] = {
    "type": "string",
    "pattern": rf"^{LITERALS}(\*{LITERALS}){{0,{MAX_STARS}}}$",
    "minLength": 1,
    "maxLength": MAX_LENGTH,
}


@extend_schema_field(GLOB_SCHEMA)
class GlobField(TextField):
    """A glob of local parts."""

    default_error_messages = {
        "invalid_pattern": f"This must be 1 to {MAX_LENGTH} characters of a local part, with at most {MAX_STARS} stars."
    }

    def to_internal_value(self, data: Any) -> str:
        try:
            return parse_pattern(super().to_internal_value(data))
        except InvalidPattern:
            self.fail("invalid_pattern")


class ReceivingDomainField(TextField):
    """The name of a domain as an A-label, or `shared`."""

    def to_internal_value(self, data: Any) -> str:
        name = super().to_internal_value(data)
        if name == SHARED:
            return name
        try:
            return to_a_label(name)
        except InvalidDomainName as error:
            raise serializers.ValidationError(translate(str(error)), code="invalid_domain") from error


class SenderField(TextField):
    """An address or a domain, in lower case."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        try:
            return (parse_recipient(text).spec if "@" in text else to_a_label(text)).lower()
        except (InvalidAddress, InvalidDomainName) as error:
            raise serializers.ValidationError(translate(str(error)), code="invalid_sender") from error


@extend_schema_field(ADDRESS_SCHEMA)
class TargetAddressField(TextField):
    """An address to forward to."""

    def to_internal_value(self, data: Any) -> str:
        try:
            return parse_address(super().to_internal_value(data)).spec
        except InvalidAddress as error:
            raise serializers.ValidationError(translate(str(error)), code="invalid_email") from error


def _flag(name: str, source: str) -> StrictBooleanField:
    return StrictBooleanField(source=source, required=False, help_text=ROUTE_TEXTS[name])


class RouteInput(StrictSerializer):
    name = NameField(help_text=ROUTE_TEXTS["name"])
    domain = ReceivingDomainField(max_length=253, help_text=ROUTE_TEXTS["domain"])
    match = GlobField(max_length=MAX_LENGTH, help_text=ROUTE_TEXTS["match"])
    priority = WholeNumberField(required=False, min_value=0, max_value=1000, help_text=ROUTE_TEXTS["priority"])
    action = OptionField(InboundRoute.RouteAction.values, required=False, help_text=ROUTE_TEXTS["action"])
    webhookIds = EntriesField(
        source="webhook_ids",
        child=TextField(max_length=40),
        max_length=MAX_WEBHOOK_IDS,
        required=False,
        help_text=ROUTE_TEXTS["webhookIds"],
    )
    forwardTo = EntriesField(
        source="forward_to",
        child=TargetAddressField(max_length=MAX_ADDRESS),
        max_length=MAX_TARGETS,
        required=False,
        help_text=ROUTE_TEXTS["forwardTo"],
    )
    attachments = OptionField(InboundRoute.AttachmentForm.values, required=False, help_text=ROUTE_TEXTS["attachments"])
    includeRaw = _flag("includeRaw", "include_raw")
    requireAuthenticated = _flag("requireAuthenticated", "require_authenticated")
    spamAbove = NumberField(
        source="spam_above",
        required=False,
        allow_null=True,
        min_value=-1000,
        max_value=1000,
        help_text=ROUTE_TEXTS["spamAbove"],
    )
    repliesOnly = _flag("repliesOnly", "replies_only")
    storeDays = WholeNumberField(
        source="store_days",
        required=False,
        allow_null=True,
        min_value=0,
        max_value=3650,
        help_text=ROUTE_TEXTS["storeDays"],
    )
    active = StrictBooleanField(required=False, help_text=ROUTE_TEXTS["active"])


class RouteChanges(AllOptional, RouteInput):
    """Changes of a route."""


# Fields that are declared.
LISTS = frozenset({"webhookIds", "forwardTo"})


class RouteSerializer(RowSerializer[InboundRoute]):
    webhookIds = TextListField(help_text=ROUTE_TEXTS["webhookIds"])
    forwardTo = TextListField(help_text=ROUTE_TEXTS["forwardTo"])

    class Meta:
        model = InboundRoute
        fields = (
            "id", "name", "domain", "match", "priority", "action", "webhookIds", "forwardTo", "attachments",
            "includeRaw", "requireAuthenticated", "spamAbove", "repliesOnly", "storeDays", "active", "createdAt",
        )  # fmt: skip
        extra_kwargs = help_texts(**{name: text for name, text in ROUTE_TEXTS.items() if name not in LISTS})


class RecipientInput(StrictSerializer):
    """An address to ask for."""

    recipient = TextField(max_length=MAX_ADDRESS, help_text="The address, such as `support@in.example.com`.")


class RouteMatchSerializer(serializers.Serializer[Any]):
    route = RouteSerializer(
        allow_null=True,
        help_text="The route that decides; null for an unknown address, and for one that needs no route.",
    )
    reply = serializers.CharField(help_text="The reply of the mail server to this recipient.")


class BlockInput(StrictSerializer):
    sender = SenderField(max_length=254, help_text="An address, or a domain for all of its addresses.")


class BlockSerializer(RowSerializer[SenderBlock]):
    class Meta:
        model = SenderBlock
        fields = ("id", "sender", "createdAt")
        extra_kwargs = help_texts(sender="The address or the domain, in lower case.")


class UnblockedSenderSerializer(serializers.Serializer[SenderBlock]):
    id = serializers.CharField()
    sender = serializers.CharField(help_text="The address or the domain.")
    deleted = serializers.BooleanField(read_only=True, default=True, help_text="Always true.")


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
    parseErrors = TextListField(source="message.parse_errors", help_text="What could not be read.")
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
        source="message.text_generated", help_text="Whether the text was made from the HTML."
    )
    replyText = serializers.CharField(
        source="message.reply_text", allow_null=True, help_text="The text without quoted messages; null if unknown."
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
        return email.message.headers

    @extend_schema_field(DownloadSerializer(allow_null=True))
    def get_raw(self, email: ReceivedEmail) -> Any:
        return DOWNLOAD.to_representation(self._download(email, RAW))


class ForwardSerializer(RowSerializer[Forward]):
    to = serializers.CharField(source="address", help_text="The address.")
    emailId = serializers.CharField(
        source="sent_email_id", allow_null=True, help_text="The id of the sent email; null if it was not sent."
    )
    error = serializers.SerializerMethodField(
        help_text="The code of the problem of sending it, `own_domain` or `daily_limit`; null if it was sent."
    )

    class Meta:
        model = Forward
        fields = ("to", "emailId", "error", "createdAt")
        extra_kwargs = help_texts(createdAt="The time when the forward was made.")

    @extend_schema_field({"type": ["string", "null"]})
    def get_error(self, forward: Forward) -> str | None:
        return forward.error or None


class ReceivedDetailSerializer(ReceivedSerializer):
    """A received email with its forwards, which its webhooks do not have."""

    forwards = ForwardSerializer(many=True, help_text="The forwards of the email, oldest first.")


# Created once: instantiation copies every field, and rendering keeps no state in them.
ATTACHMENTS: Any = ReceivedAttachmentSerializer(many=True)
DOWNLOAD: Any = DownloadSerializer()
RECEIVED_IN_WEBHOOKS: Any = ReceivedSerializer(context={"is_for_webhooks": True})


class RedeliverInput(StrictSerializer):
    webhookIds = EntriesField(
        child=TextField(max_length=40),
        max_length=MAX_WEBHOOK_IDS,
        required=False,
        help_text="Only these webhooks; without it, all that got the event.",
    )


class RedeliveredSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    deliveries = CountField(help_text="The number of deliveries that are made.")


class RereadSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    queuedAt = UtcDateTimeField(help_text="The time when the message was queued to be read again.")


class ForwardInput(StrictSerializer):
    to = TargetAddressField(max_length=MAX_ADDRESS, help_text="The address, which has to confirm it first.")


class ForwardedSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    to = serializers.CharField(source="address", help_text="The address.")
    emailId = serializers.CharField(source="sent_email_id", help_text="The id of the new email.")


class SimulationInput(StrictSerializer):
    """A message as a mail server would deliver it."""

    recipient = TextField(max_length=MAX_ADDRESS, help_text="The address in RCPT TO.")
    envelopeFrom = TextField(
        required=False, allow_blank=True, max_length=MAX_ADDRESS, help_text="The address in MAIL FROM."
    )
    raw = TextField(help_text="The message in the format of RFC 5322, at most 5 MiB.")

    def validate_raw(self, value: str) -> bytes:
        data = value.encode()
        if not data.strip():
            self.fields["raw"].fail("blank")
        if len(data) > MAX_RAW_BYTES:
            raise serializers.ValidationError("This must not exceed 5 MiB in UTF-8.", code="too_long")
        return data


class LimitSerializer(serializers.Serializer[Any]):
    used = CountField(help_text="In use.")
    limit = CountField(allow_null=True, help_text="The limit; null without one.")


class InboundSerializer(serializers.Serializer[Any]):
    """What a workspace can receive."""

    address = serializers.CharField(
        allow_null=True,
        help_text="The address of the workspace at the domain of the service; a label such as `+orders` may follow the "
        "local part. null if the operator has set no RECEIVING_DOMAIN.",
    )
    mailHosts = TextListField(help_text="The hosts that MX records of receiving domains name.")
    maxMessageBytes = CountField(help_text="The largest message.")
    storage = LimitSerializer(help_text="The bytes of stored messages.")
    messages = LimitSerializer(help_text="The messages of the current day, UTC.")


def max_message_bytes() -> int:
    return int(settings.RECEIVING_MAX_BYTES)
