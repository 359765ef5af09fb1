"""Usage and plan: what this month took of the quota, what the months before took, and what the plan allows."""

from dataclasses import dataclass
from datetime import date
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from dashboard.ui.charts import Line, bars
from dashboard.ui.current_workspace import current_workspace
from workspaces.models import Workspace
from workspaces.plans import MAX_KEYS
from workspaces.quota import Quota, read_quota
from workspaces.services import usage_history


@dataclass(frozen=True)
class Limit:
    """One thing that the plan limits; used is None where nothing is counted, limit where there is none."""

    name: str
    used: int | None
    limit: str


def usage(request: HttpRequest) -> dict[str, Any]:
    workspace = current_workspace(request)
    quota, history = read_quota(workspace), usage_history(workspace)
    return {
        "workspace": workspace,
        "quota": quota,
        "quota_percent": percent_used(quota),
        "history": list(reversed(history)),
        "plot": bars([month_name(one.month) for one in history], [Line(_("Used"), [one.used for one in history])]),
        "limits": _limits(workspace, quota),
        "unit": _("recipients") if settings.QUOTA_UNIT == "recipient" else _("emails"),
    }


def percent_used(quota: Quota) -> int:
    return 0 if not quota.limit else min(100, round(100 * quota.used / quota.limit))


def month_name(first: date) -> str:
    return date_format(first, "M Y")


def _limits(workspace: Workspace, quota: Quota) -> list[Limit]:
    plan, unlimited = workspace.limits, _("unlimited")
    days = _("%(days)s days") % {"days": plan.retention.days}
    return [
        Limit(_("Emails a month"), quota.used, unlimited if quota.limit is None else f"{quota.limit:,}"),
        Limit(_("Domains"), workspace.domains.count(), unlimited if plan.domains is None else str(plan.domains)),
        Limit(_("API keys"), workspace.api_keys.filter(revoked_at=None).count(), str(MAX_KEYS)),
        Limit(_("Emails are kept for"), None, days),
    ]
