"""What staff see first: whether mail flows, who is at work, and what keeps it from leaving."""

from typing import Any

from django.db.models import Count, Min
from django.db.models.functions import Now

from config.health import has_broker
from config.heartbeats import present_workers
from emails.sending.delivery_health import depth, is_sending, oldest_due_seconds, outcomes
from system_mail.models import SystemMail
from workspaces.models import Workspace


def operations() -> dict[str, Any]:
    """Return the figures of the front page; counted anew for each visit, in a few tenths of a second at a million."""
    waiting = SystemMail.objects.filter(state=SystemMail.State.WAITING, due_at__lte=Now())
    workers = present_workers()
    return {
        "queue": depth(),
        "oldest_due_seconds": round(oldest_due_seconds()),
        "is_sending": is_sending(),
        "has_broker": has_broker(),
        "workers": workers,
        "trouble": sorted({worker.trouble for worker in workers if worker.trouble}),
        "outcomes": list(outcomes()),
        "system_mail": waiting.aggregate(due=Count("id"), oldest=Min("created_at")),
        "suspended": Workspace.objects.filter(suspended_at__isnull=False).count(),
        "workspace_count": Workspace.objects.count(),
    }
