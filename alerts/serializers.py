"""Serializers of alerts."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from alerts.models import Alert
from core.api.fields import (
    AllOptional,
    FieldErrors,
    NumberField,
    OptionField,
    RowSerializer,
    StrictBooleanField,
    StrictSerializer,
    TextField,
    help_texts,
)
from core.lib.coded_texts import CodedText
from core.lib.translation import translate

NO_STREAM = "quota_of_a_stream"
TEXTS = {
    "metric": "The watched value: `bounce_rate` and `complaint_rate` of recipients, `failure_rate` of emails, each "
    "over seven days, or `quota_used` of the month.",
    "threshold": "The percentage at which the alert begins. It ends below nine tenths of it.",
    "stream": "The id of the only stream whose emails count; absent for all emails.",
    "emailOwners": "Whether the owners of the workspace get an email when the alert begins and when it ends.",
    "value": "The present value in percent; null with fewer than 100 emails, or without a quota.",
    "triggeredAt": "The time when the alert began; null if it has not, or has ended.",
    "lastTriggeredAt": "The time when the alert began last; null if it never did.",
}


class WatchedStreamField(TextField):
    """The id of a stream; null and an empty text are all emails."""

    def run_validation(self, data: Any = serializers.empty) -> Any:
        return "" if data is None else super().run_validation(data)


class AlertFields(StrictSerializer):
    """The fields that can be changed."""

    threshold = NumberField(min_value=0.01, max_value=100, help_text=TEXTS["threshold"])
    emailOwners = StrictBooleanField(
        source="email_owners", required=False, help_text=f"{TEXTS['emailOwners']} True by default."
    )


class AlertInput(AlertFields):
    metric = OptionField(Alert.WatchedMetric.choices, help_text=TEXTS["metric"])
    stream = WatchedStreamField(
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=40,
        help_text="The id of the only stream whose emails count, of a rate; null for all emails.",
    )

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
    value = serializers.SerializerMethodField("present_value", help_text=TEXTS["value"])

    class Meta:
        model = Alert
        fields = (
            "id", "metric", "stream", "threshold", "emailOwners", "value", "triggeredAt", "lastTriggeredAt",
            "createdAt",
        )  # fmt: skip
        extra_kwargs = help_texts(**{name: text for name, text in TEXTS.items() if name != "value"})

    def present_value(self, alert: Alert) -> float | None:
        value = self.context["values"][alert.id]
        return value.percent if value else None
