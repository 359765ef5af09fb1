"""Alerts: list with present values, create, change and delete (docs/decisions/0247)."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from alerts.checks import MINIMUM_INTERVAL
from alerts.models import Alert
from alerts.services import create_alert, delete_alert, describe_alert, update_alert
from alerts.values import read_values
from alerts.watched_value import WatchedValue
from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.pages.alerts.forms import CHANGEABLE, AlertForm, NewAlertForm
from console.dashboard.templatetags.percent import rate_text
from console.dashboard.ui.confirm import Confirmation, try_action
from console.dashboard.ui.scoping import ScopedAdmin
from console.dashboard.ui.streams import streams_of
from core.lib.translation import translate

PERCENTAGE = gettext_lazy("%(rate)s%%")
# Values of other metrics as texts.
AMOUNTS: Mapping[str, Any] = {
    Alert.WatchedMetric.LATENCY_P95: gettext_lazy("%(rate)s s"),
    Alert.WatchedMetric.WAITING: "%(rate)s",
    Alert.WatchedMetric.SILENT: gettext_lazy("%(rate)s usual gaps"),
}


class AlertSection(ScopedAdmin):
    slug, title = "alerts", gettext_lazy("Alerts")
    empty = (
        "notifications",
        gettext_lazy("No alerts yet"),
        gettext_lazy(
            "An alert notifies the owners and webhooks when a value, such as a rate or the time to send, reaches a "
            "threshold."
        ),
    )
    add_label = gettext_lazy("Create alert")

    def routes(self) -> list[URLPattern]:
        return [
            self.route("add/", "add", self.add_view),
            self.route("<str:object_id>/", "change", self.edit_view),
            self.route("<str:object_id>/delete/", "delete", self.remove_view),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        # At most 20 per workspace, so no pagination.
        alerts = self.get_queryset(request).select_related("workspace").order_by(*self.ordering)
        return self.page(request, "dashboard/alerts/list.html", title=self.title, rows=_rows(alerts))

    def add_view(self, request: HttpRequest, *_args: Any, **_named: Any) -> HttpResponse:
        workspace = current_workspace(request)
        initial = {name: request.GET[name] for name in ("metric", "stream") if name in request.GET}
        form = NewAlertForm(request.POST or None, streams=streams_of(request), initial=initial)
        alert = form.attempt(lambda: create_alert(workspace, **form.values)) if form.is_valid() else None
        if alert is None:
            return self.page(request, "dashboard/alerts/new.html", title=self.add_label, form=form)
        self.log_addition(request, alert, "Created.")
        messages.success(request, _("The alert was created. It is checked every minute."))
        return redirect(self.list_url)

    def edit_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        alert = self.find(request, object_id)
        form = AlertForm(request.POST or None, initial={name: getattr(alert, name) for name in CHANGEABLE})
        changed = form.attempt(lambda: update_alert(alert, changes=form.values)) if form.is_valid() else None
        if changed is None:
            page = {"title": translate(describe_alert(alert)), "delete_url": self.url("delete", alert.id)}
            return self.page(request, "dashboard/alerts/edit.html", form=form, row=_rows([alert])[0], **page)
        self.log_change(request, changed, "Changed.")
        messages.success(request, _("The alert was saved."))
        return redirect(self.list_url)

    def remove_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        alert = self.find(request, object_id)
        if request.method != "POST":
            lead, back = _("Nobody is notified of this value any more."), self.url("change", alert.id)
            name = translate(describe_alert(alert))
            confirmation = Confirmation(lead, _("Delete"), back, about=name, is_danger=True)
            return self.confirm(request, _("Delete alert"), confirmation)
        if try_action(request, lambda: delete_alert(alert)):
            messages.success(request, _("The alert was deleted."))
        return redirect(self.list_url)


def _rows(alerts: Iterable[Alert]) -> list[dict[str, Any]]:
    """Return alerts with their present values as texts; empty if there is none.

    next_at: the time from which an alert may begin again whose value is at its threshold; None for others.
    """
    shown = list(alerts)
    values = read_values(shown)
    return [
        {
            "alert": alert,
            "threshold": _amount(alert, alert.threshold),
            "value": _amount(alert, value.number) if (value := values[alert.id]) else "",
            "next_at": _next_at(alert, value),
        }
        for alert in shown
    ]


def _next_at(alert: Alert, value: WatchedValue | None) -> datetime | None:
    if alert.triggered_at or alert.last_triggered_at is None or value is None or not value.reaches(alert.limit):
        return None
    next_at: datetime = alert.last_triggered_at + MINIMUM_INTERVAL
    return next_at if next_at > timezone.now() else None


def _amount(alert: Alert, number: float) -> str:
    return str(AMOUNTS.get(alert.metric, PERCENTAGE)) % {"rate": rate_text(number)}
