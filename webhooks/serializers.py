"""Webhooks and their deliveries on the wire."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.api.fields import (
    AllOptional,
    EntriesField,
    RowInput,
    RowSerializer,
    TextField,
    TextListField,
    UtcDateTimeField,
)
from core.api.suggestions import MAX_NAME_LENGTH, suggest_event
from core.lib.network.address_guard import TargetRefused
from core.lib.network.target_urls import MAX_URL_LENGTH, parse_target
from core.lib.translation import translate
from events.kinds import TYPE_PREFIX, WEBHOOK_KINDS
from streams.services import MAX_STREAMS
from webhooks.formats import find_format
from webhooks.headers import HEADERS, WebhookHeadersField, masked
from webhooks.models import Webhook, WebhookDelivery
from webhooks.sending.targets import FORBIDDEN_TARGET, refusal_detail, target_rules

MAX_EVENT_NAMES = 100
EVENT_TYPE = {"type": "string", "enum": [*WEBHOOK_KINDS, *(TYPE_PREFIX + kind for kind in WEBHOOK_KINDS)]}


@extend_schema_field({"type": "string", "format": "uri", "pattern": "^[Hh][Tt][Tt][Pp]", "maxLength": MAX_URL_LENGTH})
class TargetField(TextField):
    """A URL whose text is allowed; the services check the addresses of its host."""

    def to_internal_value(self, data: Any) -> str:
        url = super().to_internal_value(data)
        try:
            parse_target(url, rules=target_rules())
        except TargetRefused as error:
            raise serializers.ValidationError(translate(refusal_detail(error)), code=FORBIDDEN_TARGET) from error
        return url


@extend_schema_field(EVENT_TYPE)
class EventTypeField(TextField):
    """An event type, with or without the prefix `email.`."""

    default_error_messages = {
        "invalid_choice": f"Unknown event type {{name!r}}.{{hint}} Use one of {', '.join(WEBHOOK_KINDS)}."
    }

    def to_internal_value(self, data: Any) -> str:
        kind = super().to_internal_value(data).removeprefix(TYPE_PREFIX)
        if kind not in WEBHOOK_KINDS:
            self.fail("invalid_choice", name=kind[:MAX_NAME_LENGTH], hint=suggest_event(kind, WEBHOOK_KINDS))
        return kind


@extend_schema_field({"type": "array", "items": EVENT_TYPE | {"minLength": 1}, "minItems": 1})
class EventTypesField(EntriesField):
    """A list of event types; duplicates are dropped."""

    child = EventTypeField()

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_empty=False, max_length=MAX_EVENT_NAMES, **options)

    def to_internal_value(self, data: Any) -> list[str]:
        return list(dict.fromkeys(super().to_internal_value(data)))


class StreamsField(EntriesField):
    """A list of ids of streams; duplicates are dropped."""

    child = TextField(max_length=40)

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_STREAMS, **options)

    def to_internal_value(self, data: Any) -> list[str]:
        return list(dict.fromkeys(super().to_internal_value(data)))


class WebhookInput(RowInput):
    url = TargetField()
    events = EventTypesField()
    streams = StreamsField(required=False)
    headers = WebhookHeadersField(required=False, help_text=HEADERS)

    class Meta:
        model = Webhook
        fields: tuple[str, ...] = ("url", "events", "streams", "format", "headers")


class ConfiguredWebhookInput(WebhookInput):
    class Meta(WebhookInput.Meta):
        fields = (*WebhookInput.Meta.fields, "active")


class WebhookChanges(AllOptional, ConfiguredWebhookInput):
    """Changes of a webhook."""


class WebhookSerializer(RowSerializer[Webhook]):
    events = serializers.ListField(child=serializers.ChoiceField(choices=WEBHOOK_KINDS))
    streams = TextListField()
    headers = serializers.SerializerMethodField(help_text=HEADERS)
    optional_fields = frozenset({"streams", "headers"})
    disabledReason = serializers.SerializerMethodField()

    class Meta:
        model = Webhook
        fields = ("id", *ConfiguredWebhookInput.Meta.fields, "disabledReason", "createdAt")

    def get_headers(self, webhook: Webhook) -> dict[str, str]:
        return masked(webhook.readable_headers)

    def get_disabledReason(self, webhook: Webhook) -> str | None:  # noqa: N802
        return webhook.disabled_reason or None


class WebhookWithSecretSerializer(WebhookSerializer):
    """The two responses that contain the secret, which is passed in the context."""

    secret = serializers.SerializerMethodField(help_text="The key of the signatures. It is shown only here: store it.")
    verificationKey = serializers.SerializerMethodField(
        help_text="The public key of the signatures, in a format that signs with a key pair."
    )

    @extend_schema_field({"type": "string", "pattern": "^whsec_[A-Za-z0-9+/]{43}=$"})
    def get_secret(self, webhook: Webhook) -> Any:
        return self.context["secret"]

    def get_verificationKey(self, webhook: Webhook) -> str | None:  # noqa: N802
        return find_format(webhook.format).verification_key(self.context["secret"])


class DeliveryItemSerializer(RowSerializer[WebhookDelivery]):
    """A delivery in a list."""

    webhookId = serializers.CharField(help_text="The id of the webhook.")
    eventId = serializers.CharField(help_text="The id of the event, the same on every attempt.")
    event = serializers.ChoiceField(choices=WEBHOOK_KINDS, source="kind")
    test = serializers.BooleanField(source="is_test")
    attemptCount = serializers.IntegerField()
    statusCode = serializers.IntegerField(allow_null=True)
    error = serializers.SerializerMethodField()
    nextAttemptAt = UtcDateTimeField(allow_null=True, help_text="The time of the next attempt; null if there is none.")

    class Meta:
        model = WebhookDelivery
        fields = (
            "id", "webhookId", "eventId", "event", "test", "status", "attemptCount", "statusCode", "error",
            "nextAttemptAt", "createdAt", "succeededAt",
        )  # fmt: skip

    def get_error(self, delivery: WebhookDelivery) -> str | None:
        return delivery.error or None


class AttemptSerializer(serializers.Serializer[Any]):
    """One attempt of the delivery log."""

    at = UtcDateTimeField(help_text="The time of the attempt.")
    durationMs = serializers.IntegerField(allow_null=True, help_text="The duration in milliseconds.")
    statusCode = serializers.IntegerField(
        allow_null=True, help_text="The HTTP status of the last response; null without one."
    )
    error = serializers.CharField(allow_null=True, help_text="The code of the last error; null after a success.")
    answer = serializers.CharField(allow_null=True, help_text="The first 4 KiB of the response; null without one.")


class DeliverySerializer(DeliveryItemSerializer):
    attempts = AttemptSerializer(many=True, help_text="The last 20 attempts, oldest first.")
    body = serializers.CharField(source="event.body", help_text="The body, exactly as it is sent.")
