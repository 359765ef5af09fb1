"""Requests and responses of `/v1/inbound`."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.api.fields import (
    ADDRESS_SCHEMA,
    OPTIONAL,
    AllOptional,
    CountField,
    EntriesField,
    NameField,
    NumberField,
    RowInput,
    RowSerializer,
    StrictSerializer,
    TextField,
    TextListField,
    UtcDateTimeField,
    WholeNumberField,
)
from core.lib.coded_texts import CodedText
from core.lib.email_addresses import InvalidAddress, parse_address, parse_recipient
from core.lib.translation import translate
from domains.names import InvalidDomainName, to_a_label
from receiving.arrival.patterns import MAX_LENGTH, MAX_STARS, InvalidPattern, parse_pattern
from receiving.models import SHARED, Forward, InboundRoute, SenderBlock
from receiving.rendering import ReceivedSerializer

MAX_WEBHOOK_IDS = 10
MAX_TARGETS = 5
MAX_ADDRESS = 320
MAX_RAW_BYTES = 5 * 1024 * 1024

# PATTERN of receiving.arrival.patterns in the syntax of ECMAScript, with at most MAX_STARS stars.
LITERALS = r"""[^\u0000-\u0020"(),:;<>@\[\\\]\u007f*]*"""
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
            if not settings.RECEIVING_DOMAIN:
                detail = translate(CodedText("receiving.no_shared_domain"))
                raise serializers.ValidationError(detail, code="receiving_not_active")
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


class RouteInput(RowInput):
    name = NameField()
    domain = ReceivingDomainField(max_length=253)
    match = GlobField(max_length=MAX_LENGTH)
    priority = WholeNumberField(required=False, min_value=0, max_value=1000)
    webhookIds = EntriesField(child=TextField(max_length=40), max_length=MAX_WEBHOOK_IDS, required=False)
    forwardTo = EntriesField(child=TargetAddressField(max_length=MAX_ADDRESS), max_length=MAX_TARGETS, required=False)
    spamAbove = NumberField(**OPTIONAL, min_value=-1000, max_value=1000)
    storeDays = WholeNumberField(**OPTIONAL, min_value=0, max_value=3650)

    class Meta:
        model = InboundRoute
        fields: tuple[str, ...] = (
            "name", "domain", "match", "priority", "action", "webhookIds", "forwardTo", "attachments", "includeRaw",
            "requireAuthenticated", "spamAbove", "repliesOnly", "storeDays", "active",
        )  # fmt: skip


class RouteChanges(AllOptional, RouteInput):
    """Changes of a route."""


class RouteSerializer(RowSerializer[InboundRoute]):
    webhookIds = TextListField()
    forwardTo = TextListField()

    class Meta:
        model = InboundRoute
        fields = ("id", *RouteInput.Meta.fields, "createdAt")


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


class UnblockedSenderSerializer(serializers.Serializer[SenderBlock]):
    id = serializers.CharField()
    sender = serializers.CharField(help_text="The address or the domain.")
    deleted = serializers.BooleanField(read_only=True, default=True, help_text="Always true.")


class ForwardSerializer(RowSerializer[Forward]):
    to = serializers.CharField(source="address")
    emailId = serializers.CharField(source="sent_email_id", allow_null=True)
    error = serializers.SerializerMethodField()

    class Meta:
        model = Forward
        fields = ("to", "emailId", "error", "createdAt")

    @extend_schema_field({"type": ["string", "null"]})
    def get_error(self, forward: Forward) -> str | None:
        return forward.error or None


class ReceivedDetailSerializer(ReceivedSerializer):
    """A received email with its forwards, which its webhooks do not have."""

    forwards = ForwardSerializer(many=True, help_text="The forwards of the email, oldest first.")


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
