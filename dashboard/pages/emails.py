"""Emails: list, search, details with timeline, resend, cancel."""

import json
import re
import secrets
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from api.errors import Problem
from dashboard.pages.email_search import count_emails, find_emails
from dashboard.pages.email_timeline import MAX_EVENTS, timeline_of
from dashboard.ui.confirm import Confirmation, problem_message, try_action
from dashboard.ui.current_workspace import current_workspace
from dashboard.ui.labels import EMAIL_TONES
from dashboard.ui.preview import preview_response
from dashboard.ui.reasons import explain_reason
from dashboard.ui.scoping import ScopedAdmin
from emails.accept.idempotency import IdempotencyKey, find_response
from emails.accept.services import resend_email
from emails.api.filters import EmailFilters
from emails.models import Email, Entrance, Recipient
from emails.rendered_content import render_email
from emails.sending.scheduling import cancel_email, is_cancellable
from emails.states import EmailStatus
from workspaces.account_status import refuse_suspended
from workspaces.models import Workspace

FILTERS = {"status", "search", "tag", "from", "to"}
# Fields that may be long; the list does not read them.
LONG_FIELDS = ("template_data", "metadata", "headers", "search_text", "error_message")
MAX_RECIPIENTS = 100
NONCE = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class RecipientRow:
    """A recipient on the page of an email. explanation: the reason as text; reply: the receiving server's reply."""

    kind: str
    address: str
    state: str
    attempts: int
    explanation: str
    reply: str


class EmailSection(ScopedAdmin):
    slug, title = "emails", gettext_lazy("Emails")
    empty = (
        "mail",
        gettext_lazy("No emails yet"),
        gettext_lazy("Emails sent through this workspace are listed here, newest first."),
    )
    ordering = ("-created_at", "-id")
    statuses = tuple(EmailStatus.values)

    def routes(self) -> list[URLPattern]:
        return [
            self.route("<str:object_id>/", "change", self.detail_view),
            self.route("<str:object_id>/preview/", "preview", self.preview_view),
            self.route("<str:object_id>/resend/", "resend", self.resend_view),
            self.route("<str:object_id>/cancel/", "cancel", self.cancel_view),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        emails = self.get_queryset(request).defer(*LONG_FIELDS)
        form = EmailFilters(request.GET, emails).form
        filters = {name: value for name, value in form.cleaned_data.items() if value} if form.is_valid() else {}
        listing = find_emails(request, emails, filters=filters)
        return self.page(
            request,
            "dashboard/emails/list.html",
            title=self.title,
            listing=listing,
            total=count_emails(current_workspace(request).id, filters),
            query=request.GET,
            errors=[str(error) for errors in form.errors.values() for error in errors],
            is_filtered=any(request.GET.get(name) for name in FILTERS),
            tones=EMAIL_TONES,
        )

    def detail_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        email = self.find(request, object_id)
        events = list(email.events.all()[: MAX_EVENTS + 1])
        files = email.content.attachments.defer("data") if email.content else []
        return self.page(
            request,
            "dashboard/emails/detail.html",
            title=email.subject,
            email=email,
            content=render_email(email),
            files=files,
            recipients=[_recipient_row(recipient) for recipient in email.recipients.all()[:MAX_RECIPIENTS]],
            timeline=timeline_of(events[:MAX_EVENTS]),
            has_more_events=len(events) > MAX_EVENTS,
            metadata=json.dumps(email.metadata, ensure_ascii=False, indent=2) if email.metadata else "",
            headers=email.headers,
            tones=EMAIL_TONES,
            is_cancellable=is_cancellable(email),
            urls={name: self.url(name, email.id) for name in ("preview", "resend", "cancel")},
        )

    def preview_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        html = render_email(self.find(request, object_id)).html
        if not html:
            raise Http404
        return preview_response(html)

    def resend_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        email = self.find(request, object_id)
        back = self.url("change", email.id)
        if request.method != "POST":
            lead = _("This sends a copy to the same recipients now. It counts towards your quota.")
            confirmation = Confirmation(lead, _("Send again"), back, about=email.subject)
            return self.confirm(request, _("Send again"), confirmation, nonce=secrets.token_urlsafe(16))
        copy_id = _resend(request, current_workspace(request), email, nonce=request.POST.get("nonce", ""))
        if copy_id is None:
            return redirect(back)
        messages.success(request, _("The copy was accepted. You are now viewing it."))
        return redirect(self.url("change", copy_id))

    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        email = self.find(request, object_id)
        back = self.url("change", email.id)
        if request.method != "POST":
            lead = _("This email will not be sent, and its quota is refunded.")
            confirmation = Confirmation(
                lead, _("Cancel email"), back, about=email.subject, back_label=_("Keep email"), is_danger=True
            )
            return self.confirm(request, _("Cancel email"), confirmation)
        if try_action(request, lambda: cancel_email(email)):
            messages.success(request, _("The email was cancelled."))
        return redirect(back)


def _recipient_row(recipient: Recipient) -> RecipientRow:
    code = str(recipient.reply_code or "")
    message = recipient.error_message or ""
    return RecipientRow(
        recipient.kind,
        recipient.address,
        recipient.state,
        recipient.attempts,
        explanation=explain_reason(recipient.reason),
        # Some servers' messages begin with the code.
        reply=message if message.startswith(code) else f"{code} {message}",
    )


def _resend(request: HttpRequest, workspace: Workspace, email: Email, *, nonce: str) -> str | None:
    """Return the copy's id, the same for the same nonce; None, with a message, if the service refuses."""
    try:
        return _resend_once(workspace, email, nonce=nonce)
    except Problem as problem:
        messages.error(request, problem_message(problem))
        return None


def _resend_once(workspace: Workspace, email: Email, *, nonce: str) -> str:
    refuse_suspended(workspace)
    key = _idempotency_key(email, nonce)
    response = find_response(workspace, key) or resend_email(
        workspace, email=email, key=key, entrance=Entrance.DASHBOARD
    )
    return str(response.body["id"])


def _idempotency_key(email: Email, nonce: str) -> IdempotencyKey | None:
    """Return the idempotency key of a submitted confirmation; None for a nonce that no form of ours sends."""
    if not NONCE.fullmatch(nonce):
        return None
    return IdempotencyKey(f"dashboard {nonce}", operation="resend", fingerprint=email.id, is_strict=True)
