"""Overview page: onboarding until the first email, and metrics of recent emails."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.http import HttpRequest

from analytics.outcomes import read_outcomes
from analytics.reputation.rates import PERIOD_DAYS
from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.pages.onboarding import read_onboarding
from console.dashboard.pages.overview.health import read_health, read_verdict
from console.dashboard.pages.overview.metrics import queue_counts, read_metrics, read_period
from console.dashboard.pages.overview.newest_events import read_newest_events
from console.dashboard.pages.overview.selection import Selection, read_selected_outcomes, read_selection
from console.dashboard.pages.overview.speed import read_speed
from console.dashboard.pages.usage import percent_used
from console.dashboard.ui.inbox import uses_inbox
from console.dashboard.ui.labels import EMAIL_TONES
from console.dashboard.ui.refresh import Refresh, refresh_of
from console.dashboard.ui.streams import selected_stream, streams_of
from core.lib.coded_texts import restore_text
from core.lib.translation import translate
from core.workspaces.models import Workspace
from core.workspaces.quota import read_quota
from emails.listing.pages import email_query, find_matches
from emails.models import Email
from emails.queue_stats import read_queue_stats
from events.feed import last_position
from streams.models import Stream

RECENT_EMAILS = 6
LIVE = ("totals", "charts", "days", "latest", "events", "verdict", "health", "speed", "queue")
WATCHED_DAYS = 90


def read_refresh(request: HttpRequest) -> Refresh:
    """Return the refresh of the overview: a new email or status changes the counters, and each event the feed."""
    today = datetime.now(UTC).date()
    days = read_outcomes(current_workspace(request), first=today - timedelta(days=WATCHED_DAYS - 1), last=today)
    # Another attempt, or a second open, is an event that changes no counter.
    return refresh_of(days, last_position(current_workspace(request).id), regions=LIVE)


def overview(request: HttpRequest) -> dict[str, Any]:
    workspace = current_workspace(request)
    stream = selected_stream(request)
    recent = _newest(workspace, stream)
    queue = read_queue_stats(workspace)
    # Set-up material does not come back when the retention has deleted all emails (docs/decisions/0268).
    has_emails = bool(recent or stream or queue.completed or queue.failed)
    health = read_health(workspace)
    quota, selection, period = read_quota(workspace), read_selection(request, workspace), read_period(request)
    days = read_selected_outcomes(request, workspace, selection, first=period.first_read, last=period.last)
    return {
        "workspace": workspace,
        "suspended_reason": translate(restore_text(workspace.suspended_code, text=workspace.suspended_reason)),
        "quota": quota,
        "quota_percent": percent_used(quota),
        "queue": queue_counts(queue),
        **read_metrics(workspace, period=period, days=days, list_filter=_list_filter(selection, stream)),
        "streams": streams_of(request),
        "stream": stream,
        "selection": selection,
        "health": health,
        "verdict": read_verdict(health),
        "selected_name": selection.name or (stream.name if stream else ""),
        "health_days": PERIOD_DAYS,
        # Histograms know neither domains nor templates and tags.
        "speed": None if selection.value else read_speed(workspace, stream, period=period),
        "recent": recent,
        "events": read_newest_events(workspace, stream) if has_emails else [],
        "has_emails": has_emails,
        **({} if has_emails else read_onboarding(workspace)),
        "tones": EMAIL_TONES,
        "has_inbox": uses_inbox(request),
    }


def _list_filter(selection: Selection, stream: Stream | None) -> str:
    return selection.list_filter or (f"stream={stream.slug}" if stream else "")


def _newest(workspace: Workspace, stream: Stream | None) -> list[Email]:
    """Return the newest emails, or those of a stream."""
    emails = Email.objects.filter(workspace=workspace)
    query = email_query(emails, {"stream": stream.slug} if stream else {}, workspace_id=workspace.id)
    return list(emails.filter(id__in=find_matches(query, start=0, limit=RECENT_EMAILS, is_counted=True).ids))
