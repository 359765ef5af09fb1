"""Emails: what was accepted, what became of it, what it says."""

import json

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern
from unfold.decorators import display

from dashboard.preview import preview_response
from dashboard.scoping import ScopedAdmin
from dashboard.timeline import MAX_EVENTS, moments
from dashboard.words import TONES, moment, shortened
from emails.models import Email
from emails.states import State


class EmailPages(ScopedAdmin):
    slug, title = "emails", "Emails"
    filters = ("status",)
    empty = ("mail", "No emails here", "What your programs send through this workspace is listed here, newest first.")
    list_display = ("email", "addressee", "state", "created")
    list_before_template = "dashboard/emails/filter.html"
    ordering = ("-created_at", "-id")
    statuses = tuple(State.values)

    def routes(self) -> list[URLPattern]:
        return [
            self.route("<str:object_id>/", "change", self.detail_view),
            self.route("<str:object_id>/preview/", "preview", self.preview_view),
        ]

    def detail_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        email = self.find(request, object_id)
        events = list(email.events.all()[: MAX_EVENTS + 1])
        return self.page(
            request,
            "dashboard/emails/detail.html",
            title=email.subject,
            email=email,
            content=email.content,
            recipients=email.recipients.all(),
            moments=moments(events[:MAX_EVENTS]),
            has_more_events=len(events) > MAX_EVENTS,
            metadata=json.dumps(email.metadata, ensure_ascii=False, indent=2) if email.metadata else "",
            tones=TONES,
            preview_url=self.url("preview", email.id),
        )

    def preview_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        html = self.find(request, object_id).content.html
        if not html:
            raise Http404
        return preview_response(html)

    @display(description="Email", header=True)
    def email(self, email: Email) -> list[str]:
        return [shortened(email.subject) or "(no subject)", shortened(f"from {email.sender}")]

    @display(description="To")
    def addressee(self, email: Email) -> str:
        others = len(email.to) + len(email.cc) + len(email.bcc) - 1
        return shortened(email.to[0], to=50) + (f" and {others} more" if others else "")

    @display(description="Status", label=TONES)
    def state(self, email: Email) -> str:
        return email.status

    @display(description="Created (UTC)")
    def created(self, email: Email) -> str:
        return moment(email.created_at)
