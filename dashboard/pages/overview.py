"""Overview page: onboarding steps, an example request, and metrics of recent emails."""

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
from dashboard.ui.labels import EMAIL_TONES
from dashboard.ui.metrics import queue_counts, read_metrics, read_period
from dashboard.ui.smtp_settings import smtp_settings
from emails.models import Email
from emails.queue_stats import read_queue_stats
from workspaces.models import Workspace
from workspaces.quota import read_quota

RECENT_EMAILS = 6


@dataclass(frozen=True)
class OnboardingStep:
    """One of the three onboarding steps to a workspace's first email."""

    title: str
    text: str
    url: str
    is_done: bool


def overview(request: HttpRequest) -> dict[str, Any]:
    workspace = current_workspace(request)
    recent = list(Email.objects.filter(workspace=workspace).order_by("-created_at", "-id")[:RECENT_EMAILS])
    steps = _onboarding_steps(workspace, has_sent=bool(recent))
    quota = read_quota(workspace)
    return {
        "workspace": workspace,
        "quota": quota,
        "quota_percent": percent_used(quota),
        "queue": queue_counts(read_queue_stats(workspace)),
        **read_metrics(workspace, period=read_period(request.GET.get("days"))),
        "recent": recent,
        "steps": steps,
        "is_ready": all(step.is_done for step in steps),
        "curl": example_curl(workspace),
        "smtp": smtp_settings(),
        "api_url": f"{settings.PUBLIC_URL}/v1",
        "tones": EMAIL_TONES,
        "has_inbox": settings.DELIVERY_TRANSPORT == "inbox",
    }


def example_curl(workspace: Workspace) -> str:
    """Return a shell command; the API key is a variable, because it cannot be shown again."""
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


def _onboarding_steps(workspace: Workspace, *, has_sent: bool) -> list[OnboardingStep]:
    keys = reverse("dashboard:workspaces_apikey_add")
    domains = reverse("dashboard:domains_domain_changelist")
    has_key = workspace.api_keys.filter(revoked_at=None).exists()
    return [
        OnboardingStep(_("Create an API key"), _("Your application sends it with every request."), keys, has_key),
        OnboardingStep(_("Add a domain"), _("The domain you send from."), domains, workspace.domains.exists()),
        OnboardingStep(_("Send your first email"), _("Run the command below."), "#send", has_sent),
    ]
