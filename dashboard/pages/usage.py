"""Usage page: quota of this month, usage of previous months, and plan limits."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _

from dashboard.ui.charts import Chart, ChartKind, ChartSeries
from dashboard.ui.current_workspace import current_workspace
from dashboard.ui.receiving import uses_receiving
from domains.plan_limit import count_domains
from receiving.arrival.usage import read_usage
from workspaces.models import Workspace
from workspaces.plans import MAX_KEYS
from workspaces.quota import Quota, read_quota
from workspaces.services import usage_history


@dataclass(frozen=True)
class PlanLimitRow:
    """One row of the plan limits; used is a number, a text, or None if usage is not counted."""

    name: str
    used: int | str | None
    limit: str


def usage(request: HttpRequest) -> dict[str, Any]:
    workspace = current_workspace(request)
    quota, history = read_quota(workspace), usage_history(workspace)
    return {
        "workspace": workspace,
        "quota": quota,
        "quota_percent": percent_used(quota),
        "history": list(reversed(history)),
        "chart": Chart(
            ChartKind.STACKED_BARS,
            [date_format(usage.month, "M Y") for usage in history],
            [ChartSeries(_("Used"), [usage.used for usage in history], "--color-primary-600")],
        ),
        "limits": [*_plan_limits(workspace, quota), *(_receiving_limits(workspace) if uses_receiving(request) else ())],
        "unit": _("recipients") if settings.QUOTA_UNIT == "recipient" else _("emails"),
    }


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
