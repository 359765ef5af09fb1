"""Usage page: quota of this month with a projection, usage of previous months, and plan limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _

from console.dashboard.auth.current_workspace import current_workspace, uses_receiving
from console.dashboard.ui.charts import Chart, ChartKind, ChartSeries
from core.workspaces.models import Workspace
from core.workspaces.plans import MAX_KEYS
from core.workspaces.quota import Quota, read_quota
from core.workspaces.services import MonthlyUsage, usage_history
from domains.plan_limit import count_domains
from receiving.arrival.usage import read_usage

# A few days predict nothing.
PROJECTED_AFTER = timedelta(days=3)
SIGNIFICANT_DIGITS = 3


@dataclass(frozen=True)
class PlanLimitRow:
    """One row of the plan limits; used is a number, a text, or None if usage is not counted."""

    name: str
    used: int | str | None
    limit: str


def usage(request: HttpRequest) -> dict[str, Any]:
    workspace = current_workspace(request)
    quota, history = read_quota(workspace), _months_since_start(workspace)
    projection = project(quota, started_at=workspace.created_at, now=datetime.now(UTC))
    return {
        "workspace": workspace,
        "quota": quota,
        "quota_percent": percent_used(quota),
        "projection": projection,
        "is_over": projection is not None and quota.limit is not None and projection > quota.limit,
        "history": list(reversed(history)),
        "chart": _chart(history, projection),
        "limits": [*_plan_limits(workspace, quota), *(_receiving_limits(workspace) if uses_receiving(request) else ())],
        "unit": _("recipients") if settings.QUOTA_UNIT == "recipient" else _("emails"),
    }


def project(quota: Quota, *, started_at: datetime, now: datetime) -> int | None:
    """Return the use at the end of the month if it goes on as since the month, or the workspace, began.

    It is an estimate, with three significant digits. None in the first three days, and for a month without emails.
    """
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    elapsed, remaining = now - max(month, started_at), quota.resets_at - now
    if not quota.used or elapsed < PROJECTED_AFTER:
        return None
    expected = quota.used + round(quota.used * (remaining / elapsed))
    return max(quota.used, round(expected, SIGNIFICANT_DIGITS - len(str(expected))))


def _months_since_start(workspace: Workspace) -> list[MonthlyUsage]:
    """Return the last twelve months, without those before the first use or the month of the workspace's creation."""
    history, created_on = usage_history(workspace), workspace.created_at.astimezone(UTC).date().replace(day=1)
    first = next((index for index, month in enumerate(history) if month.used or month.month >= created_on), -1)
    return history[first:]


def _chart(history: Sequence[MonthlyUsage], projection: int | None) -> Chart | None:
    """Return the chart; None for a single month, which would be one bar."""
    if len(history) == 1:
        return None
    series = [ChartSeries(_("Used"), [usage.used for usage in history], "--color-primary-600")]
    if projection is not None:
        expected = [*(0 for _usage in history[1:]), projection - history[-1].used]
        series.append(ChartSeries(_("Expected by the end of the month"), expected, "--pr-muted"))
    return Chart(ChartKind.STACKED_BARS, [date_format(usage.month, "M Y") for usage in history], series)


def percent_used(quota: Quota) -> int:
    return 0 if not quota.limit else min(100, round(100 * quota.used / quota.limit))


def _plan_limits(workspace: Workspace, quota: Quota) -> list[PlanLimitRow]:
    plan, unlimited = workspace.limits, _("unlimited")
    emails = unlimited if quota.limit is None else number_format(quota.limit, force_grouping=True)
    days = _("%(days)s days") % {"days": plan.retention.days}
    return [
        PlanLimitRow(_("Emails per month"), quota.used, emails),
        PlanLimitRow(_("Domains"), count_domains(workspace), unlimited if plan.domains is None else str(plan.domains)),
        PlanLimitRow(_("API keys"), workspace.api_keys.filter(revoked_at=None).count(), str(MAX_KEYS)),
        PlanLimitRow(_("Email retention"), None, days),
    ]


def _receiving_limits(workspace: Workspace) -> list[PlanLimitRow]:
    use = read_usage(workspace)
    storage = _("unlimited") if use.storage_bytes is None else _megabytes(use.storage_bytes)
    daily = number_format(use.daily_messages, force_grouping=True)
    return [
        PlanLimitRow(_("Emails received today (UTC)"), use.messages, daily),
        PlanLimitRow(_("Storage of received emails"), _megabytes(use.stored_bytes), storage),
    ]


def _megabytes(size: int) -> str:
    megabytes = size / 10**6
    number = number_format(megabytes, decimal_pos=0 if megabytes >= 10 else 1, force_grouping=True)
    return _("%(number)s\N{NO-BREAK SPACE}MB") % {"number": number}
