"""Overview page: onboarding, an example request, and metrics of recent emails."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from analytics.outcomes import read_outcomes
from dashboard.pages.onboarding import example_curl, read_onboarding, sending_domains
from dashboard.pages.overview.health import read_health
from dashboard.pages.overview.metrics import queue_counts, read_metrics, read_period
from dashboard.pages.overview.selection import read_selection
from dashboard.pages.usage import percent_used
from dashboard.ui.current_workspace import current_workspace
from dashboard.ui.labels import EMAIL_TONES
from dashboard.ui.refresh import Refresh, refresh_of
from dashboard.ui.smtp_settings import smtp_settings
from emails.models import Email
from emails.queue_stats import read_queue_stats
from lib.coded_texts import restore_text
from lib.translation import translate
from reputation.rates import PERIOD_DAYS
from workspaces.quota import read_quota

RECENT_EMAILS = 6
LIVE = ("totals", "charts", "days", "latest", "health", "queue")
WATCHED_DAYS = 90


def read_refresh(request: HttpRequest) -> Refresh:
    """Return the refresh of the overview: a new email or status changes the counters."""
    today = datetime.now(UTC).date()
    days = read_outcomes(current_workspace(request), first=today - timedelta(days=WATCHED_DAYS - 1), last=today)
    return refresh_of(days, regions=LIVE)


def overview(request: HttpRequest) -> dict[str, Any]:
    workspace = current_workspace(request)
    recent = list(Email.objects.filter(workspace=workspace).order_by("-created_at", "-id")[:RECENT_EMAILS])
    quota, selection = read_quota(workspace), read_selection(request, workspace)
    return {
        "workspace": workspace,
        "suspended_reason": translate(restore_text(workspace.suspended_code, text=workspace.suspended_reason)),
        "quota": quota,
        "quota_percent": percent_used(quota),
        "queue": queue_counts(read_queue_stats(workspace)),
        **read_metrics(workspace, period=read_period(request), slice_=selection.slice_),
        "selection": selection,
        "health": read_health(workspace),
        "health_days": PERIOD_DAYS,
        "recent": recent,
        "onboarding": read_onboarding(workspace, has_sent=bool(recent)),
        "curl": example_curl(sending_domains(workspace)),
        "smtp": smtp_settings(),
        "api_url": f"{settings.PUBLIC_URL}/v1",
        "tones": EMAIL_TONES,
        "has_inbox": settings.DELIVERY_TRANSPORT == "inbox",
    }
