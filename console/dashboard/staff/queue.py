"""Queue page of the staff admin: recipients by due time and workspace; pause and continue (docs/decisions/0266)."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from console.dashboard.ui.charts import Chart, ChartKind, ChartSeries
from console.dashboard.ui.confirm import Confirmation
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.models import Workspace
from emails.queue_stats import AXIS_HOURS, QueueOverview, read_queue_overview
from emails.sending.sending_checks import pause_sending, paused_since, resume_sending

# Rows of the table: those with most recipients.
MAX_WORKSPACES = 50


def queue_page(request: HttpRequest, context: dict[str, Any]) -> TemplateResponse:
    """Show the queue. context: the context of each page of the site."""
    refuse_without(request, "emails.view_email")
    overview = read_queue_overview()
    shares = overview.shares[:MAX_WORKSPACES]
    names = dict(Workspace.objects.filter(id__in=[share.workspace_id for share in shares]).values_list("id", "name"))
    return TemplateResponse(
        request,
        "dashboard/staff/queue.html",
        {
            **context,
            "title": _("Queue"),
            "overview": overview,
            "chart": due_chart(overview),
            "due": due_rows(overview),
            "shares": [(share, names.get(share.workspace_id, share.workspace_id)) for share in shares],
            "hidden": max(len(overview.shares) - len(shares), 0),
            "paused_since": paused_since(),
            "may_pause": request.user.has_perm("emails.change_queueentry"),
        },
    )


def pause_page(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """Ask before sending is paused, then pause it."""
    refuse_without(request, "emails.change_queueentry")
    back = reverse("admin:queue")
    if request.method == "POST":
        pause_sending()
        record_action(None, AuditAction.SENDING_PAUSED)
        messages.success(request, _("Sending is paused."))
        return redirect(back)
    lead = _(
        "No emails of any workspace are sent until sending continues. Emails are still accepted, and webhooks are "
        "still posted. Emails that are in the queue get an entry on their timeline."
    )
    confirmation = Confirmation(lead, _("Pause sending"), back, is_danger=True)
    page = {**context, "title": _("Pause sending"), "confirmation": confirmation}
    return TemplateResponse(request, "dashboard/confirm.html", page)


def resume_page(request: HttpRequest) -> HttpResponse:
    refuse_without(request, "emails.change_queueentry")
    if paused_since():
        resume_sending()
        record_action(None, AuditAction.SENDING_RESUMED)
    messages.success(request, _("Sending continues."))
    return redirect("admin:queue")


def refuse_without(request: HttpRequest, permission: str) -> None:
    if not request.user.has_perm(permission):
        raise PermissionDenied


def due_rows(overview: QueueOverview) -> list[tuple[str, int, int]]:
    """Return the label, the retries and the scheduled recipients of each hour that has any."""
    rows = [(hour_label(hour), overview.retries.get(hour, 0), overview.scheduled.get(hour, 0)) for hour in hours()]
    return [row for row in rows if row[1] or row[2]]


def due_chart(overview: QueueOverview) -> Chart:
    series = (
        (_("retries"), overview.retries, "--color-primary-600"),
        (_("scheduled"), overview.scheduled, "--pr-muted"),
    )
    return Chart(
        ChartKind.STACKED_BARS,
        [hour_label(hour) for hour in hours()],
        [ChartSeries(name, [counts.get(hour, 0) for hour in hours()], color) for name, counts, color in series],
    )


def hours() -> range:
    """Return the hours from now: 0 is the current hour with everything overdue, the last one everything later."""
    return range(AXIS_HOURS + 1)


def hour_label(hour: int) -> str:
    if hour == AXIS_HOURS:
        return _("later")
    start: datetime = timezone.localtime().replace(minute=0, second=0, microsecond=0) + timedelta(hours=hour)
    return _("now") if hour == 0 else date_format(start, "H:i")
