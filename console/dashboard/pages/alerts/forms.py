"""Forms of alerts: all fields of a new one, those that can be changed of an existing one."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext, gettext_lazy
from unfold.widgets import UnfoldAdminDecimalFieldWidget, UnfoldAdminSelectWidget, UnfoldBooleanWidget

from alerts.models import UNITS, Alert
from alerts.serializers import AlertChanges, AlertInput
from console.dashboard.ui.forms import ApiForm
from streams.models import Stream

METRICS = {
    Alert.WatchedMetric.BOUNCE_RATE: gettext_lazy("Bounce rate: recipients whose address is invalid"),
    Alert.WatchedMetric.COMPLAINT_RATE: gettext_lazy("Complaint rate: recipients who reported an email as spam"),
    Alert.WatchedMetric.FAILURE_RATE: gettext_lazy("Failure rate: emails that failed after all attempts"),
    Alert.WatchedMetric.QUOTA_USED: gettext_lazy("Quota used this month"),
    Alert.WatchedMetric.LATENCY_P95: gettext_lazy(
        "Time to send: seconds in which most recipients (95 of 100) had an outcome"
    ),
    Alert.WatchedMetric.DEFERRED_SHARE: gettext_lazy("Deferred recipients: share whose first attempt was deferred"),
    Alert.WatchedMetric.WAITING: gettext_lazy("Waiting emails: number of emails older than ten minutes"),
    Alert.WatchedMetric.SILENT: gettext_lazy("Silence: usual gaps in which nothing was sent"),
}
CHANGEABLE = {"threshold": "threshold", "email_owners": "emailOwners"}


class ThresholdForm(ApiForm):
    """The fields of an alert that can be changed."""

    threshold = forms.FloatField(
        label=gettext_lazy("Threshold"),
        min_value=0.01,
        max_value=max(unit.most for unit in UNITS.values()),
        widget=UnfoldAdminDecimalFieldWidget({"step": "any"}),
        help_text=gettext_lazy(
            "In percent; in seconds, emails or usual gaps for the time to send, waiting emails and silence. The alert "
            "begins at this value, and ends below nine tenths of it."
        ),
    )
    email_owners = forms.BooleanField(
        label=gettext_lazy("Email to owners"),
        required=False,
        initial=True,
        widget=UnfoldBooleanWidget,
        help_text=gettext_lazy(
            "All owners of the workspace get it. Webhooks can subscribe to alert.triggered and alert.resolved."
        ),
    )


class AlertForm(ThresholdForm):
    serializer, wire_names = AlertChanges, CHANGEABLE


class NewAlertForm(ThresholdForm):
    serializer, wire_names = AlertInput, {"metric": "metric", "stream": "stream", **CHANGEABLE}

    metric = forms.ChoiceField(
        label=gettext_lazy("Value"),
        choices=list(METRICS.items()),
        widget=UnfoldAdminSelectWidget,
        help_text=gettext_lazy(
            "Bounces, complaints and failures are those of the last seven days, from 100 emails on; the time to send "
            "and deferrals are those of the last hour. Silence is learned from four weeks; 2 is a good threshold."
        ),
    )
    stream = forms.ChoiceField(
        label=gettext_lazy("Stream"),
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text=gettext_lazy("Only emails of this stream count."),
    )
    field_order = ("metric", "stream", "threshold", "email_owners")

    def __init__(self, data: Any, *, streams: Sequence[Stream], **options: Any) -> None:
        super().__init__(data, **options)
        if streams:
            choices = [("", gettext("All streams")), *((stream.slug, stream.name) for stream in streams)]
            self.fields["stream"].choices = choices  # type: ignore[attr-defined]
        else:
            del self.fields["stream"]
