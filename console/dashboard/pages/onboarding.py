"""Onboarding: the steps from a new workspace to its first email, what programs need to send, and the test email."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.ui.confirm import problem_message
from console.dashboard.ui.smtp_settings import smtp_settings
from console.documentation.code_samples import ExampleRequest, curl
from core.api.errors import Problem
from core.lib.email_addresses import Address, InvalidAddress, parse_recipient
from core.lib.translation import translate
from core.workspaces.account_status import refuse_inactive, refuse_suspended
from core.workspaces.api.throttling import refuse_excess, take_request
from core.workspaces.key_limits import NO_LIMITS
from core.workspaces.models import User, Workspace
from domains.models import SENDING_STATUSES, Domain
from domains.services import is_dns_optional
from emails.accept.drafts import Draft
from emails.accept.services import send_email
from emails.models import Entrance

EXAMPLE_DOMAIN = "your-domain.example"


@dataclass(frozen=True)
class OnboardingStep:
    """A step to a workspace's first email. name: also the id of its snippet, a shell command."""

    name: str
    title: str
    text: str
    url: str
    snippet: str
    is_done: bool


@dataclass(frozen=True)
class Onboarding:
    steps: tuple[OnboardingStep, ...]

    @property
    def current(self) -> OnboardingStep:
        """The first step that is not done: in the end the first email, which is never done here."""
        return next(step for step in self.steps if not step.is_done)


def read_onboarding(workspace: Workspace) -> dict[str, Any]:
    """Return the context of the steps of a workspace without emails, with their state."""
    domains = sending_domains(workspace)
    steps = (_key_step(workspace), _domain_step(domains), _dns_step(domains), _email_step(domains))
    return {"onboarding": Onboarding(steps), **sending_details(domains)}


def sending_details(domains: Sequence[Domain]) -> dict[str, Any]:
    """Return the context of the settings with which programs send: a command, the base URL and SMTP."""
    return {"curl": example_curl(domains), "smtp": smtp_settings(), "api_url": f"{settings.PUBLIC_URL}/v1"}


def sending_domains(workspace: Workspace) -> list[Domain]:
    """Return the workspace's domains, those that can send first, then the oldest first."""
    domains = workspace.domains.only("id", "name", "status").order_by("created_at")
    return sorted(domains, key=lambda domain: domain.status not in SENDING_STATUSES)


def sending_domain_name(workspace: Workspace) -> str:
    """Return the name of the first domain of sending_domains, or that of an example."""
    return _first_name(sending_domains(workspace))


def example_curl(domains: Sequence[Domain]) -> str:
    """Return a shell command that sends an email."""
    body = {
        "from": f"Hello <hello@{_first_name(domains)}>",
        "to": "ada@example.com",
        "subject": "Hello from Postrider",
        "html": "<h1>It works</h1>",
    }
    return _curl("POST", "/emails/send", body)


@require_POST
def send_test_email(request: HttpRequest) -> HttpResponse:
    """Send a test email from the workspace's first domain to the signed-in user; it counts towards the quota."""
    assert isinstance(request.user, User)
    try:
        email_id = _send_test(current_workspace(request), to=request.user.email)
    except (Problem, InvalidAddress) as error:
        messages.error(request, problem_message(error) if isinstance(error, Problem) else translate(str(error)))
        return redirect("dashboard:index")
    messages.success(request, _("A test email to %(address)s was accepted.") % {"address": request.user.email})
    return redirect("dashboard:emails_email_change", email_id)


def _send_test(workspace: Workspace, *, to: str) -> str:
    """Return the id of the accepted email. Raises Problem and InvalidAddress."""
    name = sending_domain_name(workspace)
    draft = Draft(
        sender=Address("Postrider", f"test@{name}"),
        to=(parse_recipient(to),),
        subject=_("Test email from %(domain)s") % {"domain": name},
        html=render_to_string("dashboard/overview/test_email.html", {"workspace": workspace, "domain": name}),
    )
    return send_draft(workspace, draft)


def send_draft(workspace: Workspace, draft: Draft) -> str:
    """Accept a test email with the rules of a request with an API key; return its id. Raises Problem."""
    refuse_excess(take_request(workspace))
    refuse_suspended(workspace)
    refuse_inactive(workspace)
    draft = replace(draft, tags=("test",), entrance=Entrance.DASHBOARD)
    return str(send_email(workspace, draft=draft, key=None, limits=NO_LIMITS).body["id"])


def _key_step(workspace: Workspace) -> OnboardingStep:
    comment = _("shows the workspace and scope of the key")
    return OnboardingStep(
        "key",
        _("Create an API key"),
        _("Your application sends it with every request."),
        reverse("dashboard:workspaces_apikey_add"),
        f"export POSTRIDER_API_KEY=pr_…\n# {comment}\n{_curl('GET', '/me')}",
        is_done=workspace.api_keys.filter(revoked_at=None).exists(),
    )


def _domain_step(domains: Sequence[Domain]) -> OnboardingStep:
    return OnboardingStep(
        "domain",
        _("Add a domain"),
        _("The domain you send from."),
        reverse("dashboard:domains_domain_add"),
        f"{_full_access()}\n{_curl('POST', '/domains', {'name': EXAMPLE_DOMAIN})}",
        is_done=bool(domains),
    )


def _dns_step(domains: Sequence[Domain]) -> OnboardingStep:
    """Return the step of the DNS records, which nothing needs where all emails stay in the built-in inbox."""
    is_optional = is_dns_optional()
    page = "dashboard:domains_domain_change" if domains else "dashboard:domains_domain_add"
    domain_id = domains[0].id if domains else "dom_…"
    return OnboardingStep(
        "dns",
        _("Verify its DNS records"),
        _("Not needed here: all emails stay in the built-in inbox.")
        if is_optional
        else _("They prove that the domain is yours and sign your emails."),
        reverse(page, args=[domains[0].id] if domains else []),
        f"{_full_access()}\n{_curl('POST', f'/domains/{domain_id}/verify')}",
        is_done=is_optional or any(domain.status in SENDING_STATUSES for domain in domains),
    )


def _email_step(domains: Sequence[Domain]) -> OnboardingStep:
    return OnboardingStep(
        "curl",
        _("Send your first email"),
        _("Use the command, or send yourself a test email here."),
        "#curl",
        example_curl(domains),
        is_done=False,
    )


def _full_access() -> str:
    text = _("with a key that has full access")
    return f"# {text}"


def _first_name(domains: Sequence[Domain]) -> str:
    return domains[0].name if domains else EXAMPLE_DOMAIN


def _curl(method: str, path: str, body: Mapping[str, str] | None = None) -> str:
    """Return a command that reads the key from the environment, because it cannot be shown again."""
    return curl(ExampleRequest(method, f"{settings.PUBLIC_URL}/v1{path}", body))
