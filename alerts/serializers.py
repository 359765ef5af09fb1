"""Serializers of alerts."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from alerts.models import Alert
from core.api.fields import (
    AllOptional,
    FieldErrors,
    NumberField,
    OptionalTextField,
    RowInput,
    RowSerializer,
    StrictBooleanField,
)
from core.lib.coded_texts import CodedText
from core.lib.translation import translate

NO_STREAM = "quota_of_a_stream"


class AlertFields(RowInput):
    """The fields that can be changed."""

    threshold = NumberField(min_value=0.01, max_value=100)
    emailOwners = StrictBooleanField(
        required=False,
        help_text="Whether the owners of the workspace get an email when the alert begins and when it ends. True by "
        "default.",
    )

    class Meta:
        model = Alert
        fields: tuple[str, ...] = ("threshold", "emailOwners")


class AlertInput(AlertFields):
    stream = OptionalTextField(
        max_length=40, help_text="The id of the only stream whose emails count, of a rate; null for all emails."
    )

    class Meta(AlertFields.Meta):
        fields = (*AlertFields.Meta.fields, "metric", "stream")

    def combination_errors(self, data: Mapping[str, Any]) -> FieldErrors:
        if data.get("metric") == Alert.WatchedMetric.QUOTA_USED and data.get("stream"):
            detail = translate(CodedText("alerts.quota_has_no_stream"))
            return {"stream": [serializers.ErrorDetail(detail, code=NO_STREAM)]}
        return {}


class AlertChanges(AllOptional, AlertFields):
    """Changes of an alert; its metric and stream stay."""


class AlertSerializer(RowSerializer[Alert]):
    """An alert. `value` is its value, passed in the context (alerts.values.read_values)."""

    optional_fields = frozenset({"stream"})
    value = serializers.SerializerMethodField(
        "present_value", help_text="The present value in percent; null with fewer than 100 emails, or without a quota."
    )

    class Meta:
        model = Alert
        fields = (
            "id", "metric", "stream", "threshold", "emailOwners", "value", "triggeredAt", "lastTriggeredAt",
            "createdAt",
        )  # fmt: skip

    def present_value(self, alert: Alert) -> float | None:
        value = self.context["values"][alert.id]
        return value.percent if value else None
