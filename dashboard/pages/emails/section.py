"""Emails: list, search and export, details with timeline, resend, reschedule, cancel."""

import secrets
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import URLPattern
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.pages.emails.details import describe_email
from dashboard.pages.emails.message import describe_message, find_attachment, find_recipient
from dashboard.pages.emails.recipients import partial_failures
from dashboard.pages.emails.resend import resend
from dashboard.pages.emails.schedule import ScheduleForm
from dashboard.pages.emails.search import EmailListFilters, count_label, find_emails, list_query, suggest_tags
from dashboard.pages.emails.timeline import last_event_number
from dashboard.ui.confirm import Confirmation, try_action
from dashboard.ui.csv_files import download
from dashboard.ui.current_workspace import current_workspace
from dashboard.ui.labels import EMAIL_TONES
from dashboard.ui.preview import attachment_response, preview_response, source_response
from dashboard.ui.refresh import refresh_of
from dashboard.ui.scoping import ScopedAdmin
from dashboard.ui.streams import selected_stream, streams_of
from emails.listing.export import export_lines, find_export
from emails.rendered_content import render_email
from emails.sending.outgoing_messages import rebuild_message
from emails.sending.scheduling import cancel_email, reschedule_email
from emails.states import EmailStatus
from events.kinds import EventKind
from templates_app.models import Template
from workspaces.key_limits import NO_LIMITS

# Filters beside the status and the search field.
MORE_FILTERS = ("tag", "template", "sender", "event", "test", "from", "to")
FILTERS = ("status", "search", "stream", *MORE_FILTERS)
# Events that no status shows.
EVENTS = (EventKind.COMPLAINED, EventKind.UNSUBSCRIBED, EventKind.DEFERRED)
# Fields that may be long; the list does not read them.
LONG_FIELDS = ("template_data", "metadata", "headers", "search_text", "error_message")
MAX_TEMPLATES = 200
# The parts of an email's page that change while it is sent.
LIVE = ("state", "timeline", "recipients", "facts")


class EmailSection(ScopedAdmin):
    slug, title = "emails", gettext_lazy("Emails")
    empty = (
        "mail",
        gettext_lazy("No emails yet"),
        gettext_lazy("Emails sent through this workspace are listed here, newest first."),
    )
    statuses = tuple(EmailStatus.values)
    events = tuple(kind.value for kind in EVENTS)

    def routes(self) -> list[URLPattern]:
        return [
            self.route("export/", "export", self.export_view),
            self.route("<str:object_id>/", "change", self.detail_view),
            self.route("<str:object_id>/preview/", "preview", self.preview_view),
            self.route("<str:object_id>/message/", "message", self.message_view),
            self.route("<str:object_id>/source/", "source", self.source_view),
            self.route("<str:object_id>/attachment/", "attachment", self.attachment_view),
            self.route("<str:object_id>/resend/", "resend", self.resend_view),
            self.route("<str:object_id>/schedule/", "schedule", self.schedule_view),
            self.route("<str:object_id>/cancel/", "cancel", self.cancel_view),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        emails = self.get_queryset(request).defer(*LONG_FIELDS)
        form = EmailListFilters(request.GET, emails).form
        filters = {name: value for name, value in form.cleaned_data.items() if value} if form.is_valid() else {}
        listing = find_emails(request, emails, filters=filters)
        refresh = refresh_of([(email.id, email.status) for email in listing.rows], regions=("rows",))
        if unchanged := refresh.unchanged(request):
            return unchanged
        workspace = current_workspace(request)
        return self.page(
            request,
            "dashboard/emails/list.html",
            title=self.title,
            listing=listing,
            count=count_label(listing, emails, workspace_id=workspace.id, filters=filters),
            failures=partial_failures(listing.rows),
            query=request.GET,
            errors=[str(error) for errors in form.errors.values() for error in errors],
            is_filtered=any(request.GET.get(name) for name in FILTERS),
            has_more_filters=any(request.GET.get(name) for name in MORE_FILTERS),
            tags=suggest_tags(emails),
            streams=streams_of(request),
            stream=selected_stream(request),
            stream_names={stream.slug: stream.name for stream in streams_of(request)},
            templates=Template.objects.filter(workspace=workspace).only("name")[:MAX_TEMPLATES],
            tones=EMAIL_TONES,
            export_url=self.url("export"),
            # A search reads many emails.
            refresh=None if listing.total is not None else refresh,
        )

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Return the filtered emails as CSV; none if a filter is invalid."""
        emails = self.get_queryset(request).defer("template_data")
        form = EmailListFilters(request.GET, emails).form
        if not form.is_valid():
            return download(request, "emails.csv", export_lines(emails, []))
        filters = {name: value for name, value in form.cleaned_data.items() if value}
        export = find_export(list_query(request, emails, filters=filters))
        return download(request, "emails.csv", export_lines(emails, export.ids))

    def detail_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        email = self.find(request, object_id)
        refresh = refresh_of(email.status, last_event_number(email), regions=LIVE)
        if unchanged := refresh.unchanged(request):
            return unchanged
        names = ("preview", "message", "source", "attachment", "resend", "schedule", "cancel")
        urls = {name: self.url(name, email.id) for name in names}
        details = describe_email(email, streams=streams_of(request))
        return self.page(
            request, "dashboard/emails/detail.html", title=email.subject, urls=urls, refresh=refresh, **details
        )

    def preview_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        html = render_email(self.find(request, object_id)).html
        if not html:
            raise Http404
        return preview_response(html)

    def message_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the headers and the source of a recipient's message, for the page of the email."""
        recipient = find_recipient(request, self.find(request, object_id))
        return render(request, "dashboard/emails/message.html", describe_message(recipient))

    def source_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        recipient = find_recipient(request, self.find(request, object_id))
        return source_response(rebuild_message(recipient), filename=f"{recipient.id}.eml")

    def attachment_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        file = find_attachment(request, self.find(request, object_id))
        return attachment_response(bytes(file.data), filename=file.filename)

    def resend_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        email = self.find(request, object_id)
        back = self.url("change", email.id)
        if request.method != "POST":
            lead = _("This sends a copy to the same recipients now. It counts towards your quota.")
            confirmation = Confirmation(lead, _("Send again"), back, about=email.subject)
            return self.confirm(request, _("Send again"), confirmation, nonce=secrets.token_urlsafe(16))
        copy_id = resend(request, current_workspace(request), email)
        if copy_id is None:
            return redirect(back)
        messages.success(request, _("The copy was accepted. You are now viewing it."))
        return redirect(self.url("change", copy_id))

    def schedule_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show and handle the form that moves a scheduled email or, with the button "now", sends it."""
        email = self.find(request, object_id)
        form = ScheduleForm(request.POST or None, initial={"scheduled_for": email.scheduled_for})
        back = self.url("change", email.id)
        if not form.is_valid():
            title = _("Reschedule")
            return self.page(request, "dashboard/emails/schedule.html", title=title, form=form, email=email, back=back)
        scheduled_for = form.cleaned_data["scheduled_for"]
        if try_action(request, lambda: reschedule_email(email, scheduled_for=scheduled_for, limits=NO_LIMITS)):
            messages.success(request, _("The email was rescheduled.") if scheduled_for else _("The email is queued."))
        return redirect(back)

    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        email = self.find(request, object_id)
        back = self.url("change", email.id)
        if request.method != "POST":
            lead = _("This email will not be sent, and its quota is refunded.")
            confirmation = Confirmation(
                lead, _("Cancel email"), back, about=email.subject, back_label=_("Keep email"), is_danger=True
            )
            return self.confirm(request, _("Cancel email"), confirmation)
        if try_action(request, lambda: cancel_email(email, limits=NO_LIMITS)):
            messages.success(request, _("The email was cancelled."))
        return redirect(back)
