"""Serializers of alerts."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from alerts.models import UNITS, Alert
from alerts.services import TOO_LARGE, threshold_error
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

    threshold = NumberField(min_value=0.01, max_value=max(unit.most for unit in UNITS.values()))
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
        max_length=40,
        help_text="The id of the only stream whose emails count; null for all emails, and for `quota_used`.",
    )

    class Meta(AlertFields.Meta):
        fields = (*AlertFields.Meta.fields, "metric", "stream")

    def combination_errors(self, data: Mapping[str, Any]) -> FieldErrors:
        metric: Any = data.get("metric")
        threshold: Any = data.get("threshold")
        errors: dict[str, list[serializers.ErrorDetail]] = {}
        if metric == Alert.WatchedMetric.QUOTA_USED and data.get("stream"):
            detail = translate(CodedText("alerts.quota_has_no_stream"))
            errors["stream"] = [serializers.ErrorDetail(detail, code=NO_STREAM)]
        is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
        if isinstance(metric, str) and metric in UNITS and is_number and (error := threshold_error(metric, threshold)):
            errors["threshold"] = [serializers.ErrorDetail(translate(error), code=TOO_LARGE)]
        return errors


class AlertChanges(AllOptional, AlertFields):
    """Changes of an alert; its metric and stream stay."""


class AlertSerializer(RowSerializer[Alert]):
    """An alert. `value` is its value, passed in the context (alerts.values.read_values)."""

    optional_fields = frozenset({"stream"})
    value = serializers.SerializerMethodField(
        "present_value",
        help_text="The present value in the unit of the threshold; null with too few emails, or without a quota.",
    )

    class Meta:
        model = Alert
        fields = (
            "id", "metric", "stream", "threshold", "emailOwners", "value", "triggeredAt", "lastTriggeredAt",
            "createdAt",
        )  # fmt: skip

    def present_value(self, alert: Alert) -> float | None:
        value = self.context["values"][alert.id]
        return value.number if value else None
