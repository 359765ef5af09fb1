"""Decisions about emails that wait for approval: the forms, and the page behind the link of a request by email."""

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextareaWidget

from console.dashboard.auth.rendering import PageRenderer, expired_link_page
from console.dashboard.ui.confirm import try_action
from console.dashboard.ui.preview import preview_response
from core.workspaces.models import User
from emails.approvals import (
    MAX_REASON_LENGTH,
    InvalidApprovalLink,
    approve_email,
    find_decision,
    read_approval_token,
    reject_email,
)
from emails.listing.attachments import list_attachments
from emails.models import Email
from emails.rendered_content import render_email

# Decision → message after it.
DONE = {
    "approve": gettext_lazy("The email was approved."),
    "reject": gettext_lazy("The email was rejected. It will not be sent."),
}
DECISIONS: dict[str, str | Promise] = {
    "approved": gettext_lazy("%(who)s approved this email."),
    "rejected": gettext_lazy("%(who)s rejected this email."),
    "expired": gettext_lazy("Nobody decided about this email within seven days. It is not sent."),
    "cancelled": gettext_lazy("This email was cancelled."),
}


class RejectForm(forms.Form):
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        required=False,
        max_length=MAX_REASON_LENGTH,
        widget=UnfoldAdminTextareaWidget({"rows": 2}),
        help_text=gettext_lazy("The sender sees it; recipients do not."),
    )


def decide(request: HttpRequest, email: Email, *, person: User | None = None) -> bool:
    """Approve or reject an email as the form of the request says; show the outcome as a message.

    person: the approver, if identified by a link and not a session.
    Returns whether the decision counts: the first one does.
    """
    name, form = request.POST.get("decision", ""), RejectForm(request.POST)
    if name not in DONE or not form.is_valid():
        messages.error(request, _("Choose to approve or to reject the email."))
        return False
    reason = form.cleaned_data["reason"] or None
    acts = {
        "approve": lambda: approve_email(email, person=person),
        "reject": lambda: reject_email(email, reason=reason, person=person),
    }
    is_done = try_action(request, acts[name])
    if is_done:
        messages.success(request, DONE[name])
    return is_done


def decide_by_link(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    """Show the email behind a link; only a POST decides, because mail scanners follow links.

    The link is enough to decide, but not for somebody who is signed in to another account.
    """
    try:
        email, approver = read_approval_token(request.GET.get("token", ""))
    except InvalidApprovalLink:
        advice = _("The email does not exist any more, or you may not approve emails of this workspace.")
        return expired_link_page(request, page, title=_("This link is no longer valid"), advice=advice)
    is_other = request.user.is_authenticated and request.user != approver
    if request.method == "POST" and not is_other:
        decide(request, email, person=approver)
        return redirect(request.get_full_path())
    preview = f"{reverse('dashboard:approval_preview')}?{urlencode({'token': request.GET['token']})}"
    context = {
        "email": email,
        "approver": approver,
        "is_other": is_other,
        "preview_url": preview,
        **describe_held(email),
    }
    return page(request, "dashboard/emails/approval.html", title=_("Approve an email"), **context)


def preview_by_link(request: HttpRequest, _page: PageRenderer) -> HttpResponse:
    """Return the HTML of the email behind a link, for the sandboxed preview. Raises Http404."""
    try:
        email, _approver = read_approval_token(request.GET.get("token", ""))
    except InvalidApprovalLink as error:
        raise Http404 from error
    html = render_email(email).html
    if not html:
        raise Http404
    return preview_response(html)


def describe_decision_of(email: Email) -> str:
    """Return the decision about an email as text; empty without one."""
    decision = find_decision(email)
    if decision is None:
        return ""
    return str(DECISIONS[decision.decision]) % {"who": decision.by["name"] if decision.by else ""}


def describe_held(email: Email) -> dict[str, Any]:
    """Return the context of the pages on which somebody decides about an email."""
    return {
        "content": render_email(email),
        "files": list_attachments(email),
        "form": RejectForm(),
        "decided": "" if email.held else describe_decision_of(email),
    }
