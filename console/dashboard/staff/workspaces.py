"""Workspace page of the staff admin: volume, rates, quota and newest emails, the basis of a suspension."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from django.contrib.admin.utils import unquote
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import display

from analytics.bounces import read_causes
from analytics.outcomes import DayOutcomes, read_outcomes, sum_outcomes
from analytics.reputation.rates import PERIOD_DAYS
from console.dashboard.pages.bounces.page import CauseRow, reason_rows
from console.dashboard.pages.overview.health import HealthItem, rate_items
from console.dashboard.pages.usage import percent_used
from console.dashboard.staff.rates import OF_WORKSPACE, RatedAdmin, RateFilter, slice_counts
from console.dashboard.ui.charts import Chart, ChartKind, ChartSeries
from core.counters.slices import Dimension
from core.workspaces.admin import WorkspaceAdmin, state_badge
from core.workspaces.models import Workspace
from core.workspaces.quota import Quota, read_quota
from domains.admin import DomainAdmin
from emails.models import Email
from emails.queue_stats import QueueStats, read_queue_stats
from events.kinds import EventKind
from streams.admin import StreamAdmin
from streams.models import Stream

DAYS = 30
NEWEST_EMAILS = 10
TOP_REASONS = 5


@dataclass(frozen=True)
class WorkspaceActivity:
    """The activity of a workspace.

    days: the last DAYS days, oldest first.
    sums: the sums of these days.
    rates: the rates of PERIOD_DAYS.
    reasons: the most frequent reasons of bounces in DAYS days.
    """

    chart: Chart
    days: list[DayOutcomes]
    sums: dict[str, int]
    rates: list[HealthItem]
    rate_days: int
    quota: Quota
    quota_percent: int
    queue: QueueStats
    emails: list[Email]
    reasons: list[CauseRow]


def read_activity(workspace: Workspace) -> WorkspaceActivity:
    now = datetime.now(UTC)
    today = now.date()
    causes = read_causes(workspace, event=EventKind.BOUNCED, start=now - timedelta(days=DAYS), end=now)
    days, quota = read_outcomes(workspace, first=today - timedelta(days=DAYS - 1), last=today), read_quota(workspace)
    newest = Email.objects.filter(workspace=workspace).only("subject", "from_domain", "status", "created_at")
    emails: list[Any] = list(newest.order_by("-created_at", "-id")[:NEWEST_EMAILS])
    for email in emails:
        email.badge = state_badge(email.status)
    return WorkspaceActivity(
        volume_chart(days),
        days,
        sum_outcomes(days),
        rate_items(days[-PERIOD_DAYS:]),
        PERIOD_DAYS,
        quota,
        percent_used(quota),
        read_queue_stats(workspace),
        emails,
        list(reason_rows(causes))[:TOP_REASONS],
    )


def volume_chart(days: list[DayOutcomes]) -> Chart:
    series = (
        (_("delivered"), ("delivered", "sent"), "--color-primary-600"),
        (_("queued"), ("queued",), "--pr-muted"),
        (_("bounced"), ("bounced", "failed"), "--pr-danger"),
    )
    return Chart(
        ChartKind.STACKED_BARS,
        [date_format(day.day, "j M") for day in days],
        [
            ChartSeries(name, [sum(day.outcomes[key] for key in keys) for day in days], color)
            for name, keys, color in series
        ],
    )


class ActiveWorkspaceAdmin(RatedAdmin, WorkspaceAdmin):
    """Adds volume, rates and activity, which read apps above the workspaces."""

    counts = OF_WORKSPACE
    list_display: Any = ("name", "plan", "state", *RatedAdmin.rate_columns, "is_proven", "created_at")
    list_filter: ClassVar[Any] = (RateFilter, *WorkspaceAdmin.list_filter)
    change_form_outer_before_template = "dashboard/staff/workspace.html"

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponseBase:
        workspace = self.get_object(request, unquote(object_id)) if self.has_view_permission(request) else None
        extra = {"activity": read_activity(workspace)} if workspace else {}
        kwargs["extra_context"] = {**extra, **(kwargs.get("extra_context") or {})}
        response: HttpResponseBase = super().change_view(request, object_id, *args, **kwargs)
        return response


class RatedDomainAdmin(RatedAdmin, DomainAdmin):
    """Adds the volume and the rates of the emails from a domain."""

    counts = slice_counts("domains_domain", Dimension.DOMAIN, "name")
    list_display: Any = ("name", "workspace", "state", *RatedAdmin.rate_columns, "created_at", "verified_at")
    list_filter: ClassVar[Any] = (RateFilter, *DomainAdmin.list_filter)


class RatedStreamAdmin(RatedAdmin, StreamAdmin):
    """Adds the volume and the rates of a stream; those of `main` are the rest of its workspace."""

    counts = slice_counts("streams_stream", Dimension.STREAM, "slug")
    list_display: Any = (
        "slug",
        "workspace",
        "kind",
        "state",
        *RatedAdmin.rate_columns,
        "reason",
        "paused_at",
        "created_at",
    )
    list_filter: ClassVar[Any] = (RateFilter, *StreamAdmin.list_filter)

    @display(description=gettext_lazy("Recipients, 7 days"), ordering="sent")
    def volume(self, row: Stream) -> str:
        return "–" if row.is_main else super().volume(row)  # noqa: RUF001 - as in tables
