"""Webhooks and their deliveries on the wire."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from api.fields import EntriesField, OptionField, StrictBooleanField, StrictSerializer, TextField, UtcDateTimeField
from api.suggestions import MAX_NAME_LENGTH, suggest_event
from events.kinds import TYPE_PREFIX, WEBHOOK_KINDS
from lib.address_guard import TargetRefused
from lib.guarded_http import MAX_URL_LENGTH, parse_target
from webhooks.formats import find_format, format_choices
from webhooks.models import Webhook, WebhookDelivery, WebhookDeliveryStatus
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
            raise serializers.ValidationError(refusal_detail(error), code=FORBIDDEN_TARGET) from error
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


class FormatField(OptionField):
    """The name of a format. Each copy of the field reads the registered ones."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=format_choices(), **options)


class WebhookInput(StrictSerializer):
    url = TargetField()
    events = EventTypesField()
    format = FormatField(required=False)


class WebhookChanges(StrictSerializer):
    url = TargetField(required=False)
    events = EventTypesField(required=False)
    format = FormatField(required=False)
    active = StrictBooleanField(required=False)


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    events = serializers.ListField(child=serializers.ChoiceField(choices=WEBHOOK_KINDS))
    disabledReason = serializers.SerializerMethodField()  # noqa: N815
    createdAt = UtcDateTimeField(source="created_at")  # noqa: N815

    class Meta:
        model = Webhook
        fields = ("id", "url", "events", "format", "active", "disabledReason", "createdAt")

    def get_disabledReason(self, webhook: Webhook) -> str | None:  # noqa: N802
        return webhook.disabled_reason or None


class WebhookWithSecretSerializer(WebhookSerializer):
    """The two responses that contain the secret, which is passed in the context."""

    secret = serializers.SerializerMethodField()
    verificationKey = serializers.SerializerMethodField(  # noqa: N815
        help_text="The public key of the signatures, in a format that signs with a key pair."
    )

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret", "verificationKey")  # type: ignore[assignment]  # one more than its parent's

    @extend_schema_field({"type": "string", "pattern": "^whsec_[A-Za-z0-9+/]{43}=$"})
    def get_secret(self, webhook: Webhook) -> Any:
        return self.context["secret"]

    def get_verificationKey(self, webhook: Webhook) -> str | None:  # noqa: N802
        return find_format(webhook.format).verification_key(self.context["secret"])


class DeliveryItemSerializer(serializers.ModelSerializer[WebhookDelivery]):
    """A delivery in a list."""

    webhookId = serializers.CharField(source="webhook_id")  # noqa: N815
    eventId = serializers.CharField(source="event_id")  # noqa: N815
    event = serializers.ChoiceField(choices=WEBHOOK_KINDS, source="kind")
    test = serializers.BooleanField(source="is_test")
    status = serializers.ChoiceField(choices=WebhookDeliveryStatus.choices)
    attemptCount = serializers.IntegerField(source="attempt_count")  # noqa: N815
    statusCode = serializers.IntegerField(source="status_code", allow_null=True)  # noqa: N815
    error = serializers.SerializerMethodField()
    nextAttemptAt = UtcDateTimeField(source="next_attempt_at", allow_null=True)  # noqa: N815
    createdAt = UtcDateTimeField(source="created_at")  # noqa: N815
    succeededAt = UtcDateTimeField(source="succeeded_at", allow_null=True)  # noqa: N815

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

    at = UtcDateTimeField()
    durationMs = serializers.IntegerField(allow_null=True)  # noqa: N815
    statusCode = serializers.IntegerField(allow_null=True)  # noqa: N815
    error = serializers.CharField(allow_null=True)
    answer = serializers.CharField(allow_null=True)


class DeliverySerializer(DeliveryItemSerializer):
    attempts = AttemptSerializer(many=True)
    body = serializers.CharField(source="event.body")

    class Meta:
        model = WebhookDelivery
        fields = (*DeliveryItemSerializer.Meta.fields, "attempts", "body")
