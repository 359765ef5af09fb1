"""Emails: what was accepted, what became of it, what it says; send it again, or call it off."""

import json
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.pages.email_recipients import described
from dashboard.pages.email_search import find_emails, total_of
from dashboard.pages.email_timeline import MAX_EVENTS, moments
from dashboard.pages.resend import new_nonce, resend
from dashboard.ui.confirm import Question, succeeded
from dashboard.ui.current_workspace import current_workspace
from dashboard.ui.labels import TONES
from dashboard.ui.listing import refuse_unknown
from dashboard.ui.preview import preview_response
from dashboard.ui.scoping import ScopedAdmin
from emails.api.filters import EmailFilters
from emails.rendered_content import wording_of
from emails.sending.scheduling import cancel_email
from emails.states import State

FILTERS = {"status", "search", "tag", "from", "to"}
# A list never reads what may be long.
LONG = ("template_data", "metadata", "headers", "search_text", "error_message")


class EmailPages(ScopedAdmin):
    slug, title = "emails", gettext_lazy("Emails")
    empty = (
        "mail",
        gettext_lazy("No emails here"),
        gettext_lazy("What your programs send through this workspace is listed here, newest first."),
    )
    ordering = ("-created_at", "-id")
    statuses = tuple(State.values)

    def routes(self) -> list[URLPattern]:
        return [
            self.route("<str:object_id>/", "change", self.detail_view),
            self.route("<str:object_id>/preview/", "preview", self.preview_view),
            self.route("<str:object_id>/resend/", "resend", self.resend_view),
            self.route("<str:object_id>/cancel/", "cancel", self.cancel_view),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        refuse_unknown(request, FILTERS)
        asked = EmailFilters(data=request.GET.dict())
        filters: dict[str, Any] = asked.validated_data if asked.is_valid() else {}
        listing = find_emails(request, self.get_queryset(request).defer(*LONG), filters=filters)
        return self.page(
            request,
            "dashboard/emails/list.html",
            title=self.title,
            listing=listing,
            total=total_of(current_workspace(request).id, filters),
            asked=request.GET,
            errors=_sentences(asked.errors),
            is_filtered=any(request.GET.get(name) for name in FILTERS),
            tones=TONES,
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
            wording=wording_of(email),
            files=files,
            recipients=described(email),
            moments=moments(events[:MAX_EVENTS]),
            has_more_events=len(events) > MAX_EVENTS,
            metadata=json.dumps(email.metadata, ensure_ascii=False, indent=2) if email.metadata else "",
            headers=email.headers,
            tones=TONES,
            is_scheduled=email.status == State.SCHEDULED,
            urls={name: self.url(name, email.id) for name in ("preview", "resend", "cancel")},
        )

    def preview_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        html = wording_of(self.find(request, object_id)).html
        if not html:
            raise Http404
        return preview_response(html)

    def resend_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        email = self.find(request, object_id)
        back = self.url("change", email.id)
        if request.method != "POST":
            lead = _("A copy goes to the same recipients now and counts towards the quota.")
            question = Question(lead, _("Send again"), back, about=email.subject)
            return self.ask(request, _("Send again"), question, nonce=new_nonce())
        copy_id = resend(request, current_workspace(request), email, nonce=request.POST.get("nonce", ""))
        if copy_id is None:
            return redirect(back)
        messages.success(request, _("A copy is accepted; this is its page."))
        return redirect(self.url("change", copy_id))

    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        email = self.find(request, object_id)
        back = self.url("change", email.id)
        if request.method != "POST":
            lead = _("It will never be sent, and what it took of the quota is given back.")
            question = Question(lead, _("Cancel email"), back, about=email.subject, keep=_("Keep it"), is_danger=True)
            return self.ask(request, _("Cancel email"), question)
        if succeeded(request, lambda: cancel_email(email)):
            messages.success(request, _("The email is cancelled."))
        return redirect(back)


def _sentences(errors: Mapping[str, Any]) -> list[str]:
    return [str(error) for found in errors.values() for error in found]
