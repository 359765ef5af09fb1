"""Test emails of the template editor: the unsaved draft, rendered with its sample data."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.pages.onboarding import send_draft, sending_domain_name
from console.dashboard.pages.templates.drafts import TemplateDraft, check_draft
from console.dashboard.ui.confirm import problem_message
from core.api.errors import Problem
from core.lib.email_addresses import InvalidAddress, parse_address, parse_recipient
from core.lib.translation import translate
from core.workspaces.models import Workspace
from emails.accept.drafts import Draft
from templates_app.models import Template


def default_sender(workspace: Workspace) -> str:
    return f"test@{sending_domain_name(workspace)}"


def send_test(request: HttpRequest, draft: TemplateDraft) -> dict[str, Any]:
    """Send the draft in the language that is shown; return a message and the URL of the email, or an error."""
    if draft.kind != Template.TemplateKind.TEMPLATE:
        return {"error": _("A layout or partial cannot be sent. Send a test of a template that uses it.")}
    rendered = check_draft(draft)
    if "error" in rendered:
        return {"error": rendered["error"]}
    try:
        email_id = _send(current_workspace(request), request, rendered)
    except InvalidAddress as error:
        return {"error": translate(str(error))}
    except Problem as problem:
        return {"error": problem_message(problem)}
    return {
        "message": _("The test email was accepted."),
        "url": reverse("dashboard:emails_email_change", args=[email_id]),
    }


def _send(workspace: Workspace, request: HttpRequest, rendered: dict[str, Any]) -> str:
    draft = Draft(
        sender=parse_address(request.POST.get("test_from", "")),
        to=(parse_recipient(request.POST.get("test_to", "")),),
        subject=rendered["subject"],
        html=rendered["html"],
        text=rendered["text"],
        locale=rendered["locale"],
    )
    return send_draft(workspace, draft)
