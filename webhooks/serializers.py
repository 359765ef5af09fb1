"""Webhooks and their deliveries on the wire."""

from typing import Any

from rest_framework import serializers

from api.fields import StrictBooleanField, StrictSerializer, TextField, WireTimeField
from lib.address_guard import TargetRefused
from lib.guarded_http import read_target
from webhooks.event_types import KINDS, PREFIX
from webhooks.models import Webhook, WebhookDelivery
from webhooks.sending.targets import FORBIDDEN, rules, sentence_for

MAX_EVENTS_NAMED = 100


class TargetField(TextField):
    """A URL that may be called as far as its text tells; services look where its name leads."""

    def to_internal_value(self, data: Any) -> str:
        url = super().to_internal_value(data)
        try:
            read_target(url, rules=rules())
        except TargetRefused as error:
            raise serializers.ValidationError(sentence_for(error), code=FORBIDDEN) from error
        return url


class KindField(TextField):
    """A kind of event, with or without `email.` before it."""

    default_error_messages = {"invalid_choice": f"There is no such kind; there are {', '.join(KINDS)}."}

    def to_internal_value(self, data: Any) -> str:
        kind = super().to_internal_value(data).removeprefix(PREFIX)
        if kind not in KINDS:
            self.fail("invalid_choice")
        return kind


class KindsField(serializers.ListField):
    """One kind or more; one that is named twice is kept once."""

    child = KindField()
    default_error_messages = {"max_length": f"This names more than {MAX_EVENTS_NAMED}."}

    def to_internal_value(self, data: Any) -> list[str]:
        # Counted before the first of a million is read.
        if isinstance(data, list) and len(data) > MAX_EVENTS_NAMED:
            self.fail("max_length")
        return list(dict.fromkeys(super().to_internal_value(data)))


class WebhookInput(StrictSerializer):
    url = TargetField()
    events = KindsField(allow_empty=False)


class WebhookChanges(StrictSerializer):
    url = TargetField(required=False)
    events = KindsField(allow_empty=False, required=False)
    active = StrictBooleanField(required=False)


class DeliveryQuery(serializers.Serializer[Any]):
    """What narrows the list of deliveries."""

    status = serializers.ChoiceField(choices=WebhookDelivery.Status.choices, required=False)
    event = KindField(required=False, source="kind")


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    events = serializers.ListField(child=serializers.ChoiceField(choices=KINDS))
    disabledReason = serializers.SerializerMethodField()  # noqa: N815
    createdAt = WireTimeField(source="created_at")  # noqa: N815

    class Meta:
        model = Webhook
        fields = ("id", "url", "events", "active", "disabledReason", "createdAt")

    def get_disabledReason(self, webhook: Webhook) -> str | None:  # noqa: N802
        return webhook.disabled_reason or None


class DeliveryItemSerializer(serializers.ModelSerializer[WebhookDelivery]):
    """A delivery in a list."""

    webhookId = serializers.CharField(source="webhook_id")  # noqa: N815
    eventId = serializers.CharField(source="event_id")  # noqa: N815
    event = serializers.ChoiceField(choices=KINDS, source="kind")
    test = serializers.BooleanField(source="is_test")
    status = serializers.ChoiceField(choices=WebhookDelivery.Status.choices)
    attemptCount = serializers.IntegerField(source="attempt_count")  # noqa: N815
    statusCode = serializers.IntegerField(source="status_code", allow_null=True)  # noqa: N815
    error = serializers.SerializerMethodField()
    nextAttemptAt = WireTimeField(source="next_attempt_at", allow_null=True)  # noqa: N815
    createdAt = WireTimeField(source="created_at")  # noqa: N815
    succeededAt = WireTimeField(source="succeeded_at", allow_null=True)  # noqa: N815

    class Meta:
        model = WebhookDelivery
        fields = (
            "id",
            "webhookId",
            "eventId",
            "event",
            "test",
            "status",
            "attemptCount",
            "statusCode",
            "error",
            "nextAttemptAt",
            "createdAt",
            "succeededAt",
        )

    def get_error(self, delivery: WebhookDelivery) -> str | None:
        return delivery.error or None


class AttemptSerializer(serializers.Serializer[Any]):
    """One attempt, as the log keeps it."""

    at = serializers.CharField()
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
