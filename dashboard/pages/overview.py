"""The first page: what to do next, how to send, and what became of what was sent."""

import json
import shlex
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from dashboard.pages.usage import percent_used
from dashboard.ui.current_workspace import current_workspace
from dashboard.ui.labels import TONES
from dashboard.ui.metrics import figures, queue_words, read_period
from emails.models import Email
from emails.queue_stats import read_stats
from workspaces.models import Workspace
from workspaces.quota import read_quota

RECENT = 6


@dataclass(frozen=True)
class Step:
    """One of the three things between a new workspace and its first email."""

    title: str
    text: str
    url: str
    is_done: bool


def overview(request: HttpRequest) -> dict[str, Any]:
    workspace = current_workspace(request)
    recent = list(workspace_emails(workspace)[:RECENT])
    steps = _steps(workspace, has_sent=bool(recent))
    quota = read_quota(workspace)
    return {
        "workspace": workspace,
        "quota": quota,
        "quota_percent": percent_used(quota),
        "queue": queue_words(read_stats(workspace)),
        **figures(workspace, period=read_period(request.GET.get("days"))),
        "recent": recent,
        "steps": steps,
        "is_ready": all(step.is_done for step in steps),
        "curl": example_curl(workspace),
        "api_url": f"{settings.PUBLIC_URL}/v1",
        "tones": TONES,
        "has_inbox": settings.DELIVERY_TRANSPORT == "inbox",
    }


def workspace_emails(workspace: Workspace) -> Any:
    return Email.objects.filter(workspace=workspace).order_by("-created_at", "-id")


def example_curl(workspace: Workspace) -> str:
    """Return a command for a shell; the key in it is a variable, because only its owner knows it."""
    domain = workspace.domains.order_by("created_at").values_list("name", flat=True).first() or "your-domain.example"
    body = {
        "from": f"Hello <hello@{domain}>",
        "to": "ada@example.com",
        "subject": "Hello from Postrider",
        "html": "<h1>It works</h1>",
    }
    return " \\\n  ".join(
        [
            f"curl {settings.PUBLIC_URL}/v1/emails/send",
            '-H "Authorization: Bearer $POSTRIDER_KEY"',
            '-H "Content-Type: application/json"',
            f"-d {shlex.quote(json.dumps(body, indent=2))}",
        ]
    )


def _steps(workspace: Workspace, *, has_sent: bool) -> list[Step]:
    keys = reverse("dashboard:workspaces_apikey_add")
    domains = reverse("dashboard:domains_domain_changelist")
    has_key = workspace.api_keys.filter(revoked_at=None).exists()
    return [
        Step(_("Issue an API key"), _("Your program shows it with every call."), keys, has_key),
        Step(_("Register a domain"), _("The one your mail comes from."), domains, workspace.domains.exists()),
        Step(_("Send your first email"), _("Paste the command below into a shell."), "#send", has_sent),
    ]
