"""Emails: list, search and export, details with timeline, resend, reschedule, cancel."""

import secrets
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import URLPattern
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.dashboard.auth.current_workspace import current_workspace, is_owner, uses_receiving
from console.dashboard.pages.emails.approvals import decide, describe_held
from console.dashboard.pages.emails.bulk import ALL_ACTIONS, MAX_SELECTED, actions_for, cancel_once, describe_selection
from console.dashboard.pages.emails.details import describe_email, summarize_email
from console.dashboard.pages.emails.display import COLUMNS, ROWS, read_display, save_display
from console.dashboard.pages.emails.erasures import confirm_erasure, describe_erasure, find_request
from console.dashboard.pages.emails.message import describe_message, find_attachment, find_recipient
from console.dashboard.pages.emails.recipient_history import (
    describe_recipient,
    find_recipients,
    parse_recipient_address,
    recipient_url,
)
from console.dashboard.pages.emails.recipients import partial_failures
from console.dashboard.pages.emails.resend import resend
from console.dashboard.pages.emails.schedule import ScheduleForm
from console.dashboard.pages.emails.search import (
    EmailListFilters,
    count_label,
    count_statuses,
    find_emails,
    list_query,
    suggest_tags,
)
from console.dashboard.pages.emails.subject_exports import (
    confirm_export,
    describe_export,
    download_export,
)
from console.dashboard.pages.emails.timeline import last_event_number
from console.dashboard.ui.confirm import Confirmation, try_action
from console.dashboard.ui.csv_files import download
from console.dashboard.ui.labels import EMAIL_TONES, SUPPRESSION_TONES
from console.dashboard.ui.listing import PAGE_PARAMETER
from console.dashboard.ui.preview import attachment_response, preview_response, source_response
from console.dashboard.ui.refresh import refresh_of
from console.dashboard.ui.scoping import ScopedAdmin
from console.dashboard.ui.streams import selected_stream, streams_of
from console.privacy.exports import request_export
from console.privacy.models import Erasure, SubjectExport
from console.privacy.services import request_erasure
from core.lib.ids import InvalidId
from core.workspaces.key_limits import NO_LIMITS
from emails.listing.export import export_lines, find_export
from emails.listing.filters import filter_values
from emails.models import Email
from emails.rendered_content import render_email
from emails.sending.outgoing_messages import rebuild_message
from emails.sending.scheduling import reschedule_email
from emails.sending.sending_checks import find_wait
from emails.states import EmailStatus
from events.kinds import EventKind
from templates_app.models import Template

FILTERS = ("status", "search", "stream", "tag", "template", "sender", "event", "test", "held", "from", "to")
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
            self.route("recipient/", "recipient", self.recipient_view),
            self.route("recipient/erase/", "erase", self.erase_view),
            self.route("recipient/erasure/", "erasure", self.erasure_view),
            self.route("recipient/export-person/", "export_person", self.export_person_view),
            self.route("recipient/subject-export/", "subject_export", self.subject_export_view),
            self.route("recipient/subject-export/file/", "subject_export_file", self.subject_export_file_view),
            self.post_route("display/", "display", self.display_view),
            self.post_route("bulk/", "bulk", self.bulk_view),
            self.route("<str:object_id>/", "change", self.detail_view),
            self.route("<str:object_id>/panel/", "panel", self.panel_view),
            self.route("<str:object_id>/preview/", "preview", self.preview_view),
            self.route("<str:object_id>/message/", "message", self.message_view),
            self.route("<str:object_id>/source/", "source", self.source_view),
            self.route("<str:object_id>/attachment/", "attachment", self.attachment_view),
            self.route("<str:object_id>/resend/", "resend", self.resend_view),
            self.route("<str:object_id>/schedule/", "schedule", self.schedule_view),
            self.route("<str:object_id>/cancel/", "cancel", self.cancel_view),
            self.route("<str:object_id>/decide/", "decide", self.decide_view),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        emails = self.get_queryset(request).defer(*LONG_FIELDS)
        filterset = EmailListFilters(request.GET, emails)
        form = filterset.form
        filters = filter_values(filterset) if form.is_valid() else {}
        query = list_query(request, emails, filters=filters)
        listing = find_emails(request, emails, query, filters=filters)
        refresh = refresh_of([(email.id, email.status) for email in listing.rows], regions=("rows",))
        if unchanged := refresh.unchanged(request):
            return unchanged
        workspace = current_workspace(request)
        statuses = count_statuses(workspace.id, filters)
        templates = Template.objects.sendable().filter(workspace=workspace).only("name")[:MAX_TEMPLATES]
        return self.page(
            request,
            "dashboard/emails/list.html",
            title=_("Waiting for approval") if filters.get("held") else self.title,
            listing=listing,
            count=count_label(listing, query, statuses=statuses, filters=filters),
            statuses=statuses,
            display=read_display(request),
            display_columns=COLUMNS,
            display_rows=ROWS,
            failures=partial_failures(listing.rows),
            recipients=find_recipients(filters.get("search", ""), listing.rows),
            query=request.GET,
            errors=[str(error) for errors in form.errors.values() for error in errors],
            is_filtered=any(request.GET.get(name) for name in FILTERS),
            tags=suggest_tags(emails),
            streams=streams_of(request),
            stream=selected_stream(request),
            stream_names={stream.slug: stream.name for stream in streams_of(request)},
            templates=templates,
            template_names={template.id: template.name for template in templates},
            tones=EMAIL_TONES,
            urls={name: self.url(name) for name in ("export", "display", "bulk")},
            bulk_actions=actions_for(request),
            # A search reads many emails.
            refresh=None if listing.total is not None else refresh,
        )

    def display_view(self, request: HttpRequest) -> HttpResponse:
        """Store the columns and the number of rows, and return to the same emails."""
        response = redirect(self._filtered_url(request))
        save_display(request, response)
        return response

    def bulk_view(self, request: HttpRequest) -> HttpResponseBase:
        """Export the selected emails; or ask for a confirmation that posts the selection again, then act."""
        name, selected, back = request.POST.get("action", ""), self._selected(request), self._filtered_url(request)
        if name == "export" and selected:
            emails = self.get_queryset(request).defer("template_data")
            return download(request, "emails.csv", export_lines(emails, [email.id for email in selected]))
        if name not in actions_for(request) or not selected:
            messages.error(request, _("Select emails first."))
        elif "confirmed" not in request.POST:
            return self._confirm_bulk(request, name, selected, back)
        else:
            ALL_ACTIONS[name].run(request, current_workspace(request), selected)
        return redirect(back)

    def _confirm_bulk(self, request: HttpRequest, name: str, selected: list[Email], back: str) -> HttpResponse:
        action, about = ALL_ACTIONS[name], describe_selection(name, selected)
        confirmation = Confirmation(
            action.lead, str(action.label), back, about, back_label=_("Back"), is_danger=action.is_danger
        )
        values = {"confirmed": "1", "action": name, "query": request.POST.get("query", "")}
        hidden = [*values.items(), *(("selected", email.id) for email in selected)]
        return self.confirm(request, str(action.label), confirmation, hidden=hidden, nonce=secrets.token_urlsafe(16))

    def _selected(self, request: HttpRequest) -> list[Email]:
        """Return the selected emails of the workspace, at most MAX_SELECTED. Raises Http404 for an invalid id."""
        ids = request.POST.getlist("selected")[:MAX_SELECTED]
        try:
            return list(self.get_queryset(request).filter(id__in=ids))
        except InvalidId as error:
            raise Http404 from error

    def _filtered_url(self, request: HttpRequest) -> str:
        """Return the URL of the list with the filters that a form has sent."""
        query = QueryDict(request.POST.get("query", ""), mutable=True)
        query.pop(PAGE_PARAMETER, None)
        return f"{self.list_url}?{query.urlencode()}" if query else self.list_url

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Return the filtered emails as CSV; none if a filter is invalid."""
        emails = self.get_queryset(request).defer("template_data")
        filterset = EmailListFilters(request.GET, emails)
        if not filterset.form.is_valid():
            return download(request, "emails.csv", export_lines(emails, []))
        export = find_export(list_query(request, emails, filters=filter_values(filterset)))
        return download(request, "emails.csv", export_lines(emails, export.ids))

    def recipient_view(self, request: HttpRequest) -> HttpResponse:
        """Return the page of an address, which needs no email; a form without one."""
        text = request.GET.get("address", "")
        address = parse_recipient_address(text)
        template, title = "dashboard/emails/recipient.html", address or _("Recipient")
        if not address:
            return self.page(request, template, title=title, address="", text=text)
        details = describe_recipient(request, current_workspace(request), address, streams=streams_of(request))
        return self.page(
            request, template, title=title, suppression_tones=SUPPRESSION_TONES, tones=EMAIL_TONES,
            uses_receiving=uses_receiving(request), may_erase=is_owner(request), **details,
        )  # fmt: skip

    def erase_view(self, request: HttpRequest) -> HttpResponse:
        """Ask whether to erase a person, then request it, for owners only."""
        return self.request_of_person(request, _("Erase a person"), confirm_erasure, request_erasure, page="erasure")

    def request_of_person(
        self,
        request: HttpRequest,
        title: str,
        confirmation: Callable[[str], Confirmation],
        act: Callable[..., Erasure | SubjectExport],
        *,
        page: str,
    ) -> HttpResponse:
        """Ask whether to do something with the data of a person, then request it, for owners only.

        act: requests it for a workspace and an `email`.
        page: the name of the page of a request.
        """
        address = parse_recipient_address(request.GET.get("address", ""))
        if not address:
            return redirect(self.url("recipient"))
        if not is_owner(request):
            raise Http404
        if request.method != "POST":
            return self.confirm(request, title, confirmation(address))
        started = list[Erasure | SubjectExport]()
        if try_action(request, lambda: started.append(act(current_workspace(request), email=address))):
            return redirect(f"{self.url(page)}?id={started[0].id}")
        return redirect(recipient_url(address))

    def erasure_view(self, request: HttpRequest) -> HttpResponse:
        """Return the receipt of an erasure, for owners only."""
        if "id" not in request.GET:
            return redirect(self.url("recipient"))
        erasure = find_request(request, Erasure, prefix="era_")
        refresh = refresh_of(erasure.status, erasure.counts, erasure.waiting, regions=("receipt",))
        return refresh.unchanged(request) or self.page(
            request,
            "dashboard/emails/erasure.html",
            title=_("Erasure"),
            refresh=None if erasure.completed_at else refresh,
            **describe_erasure(erasure),
        )

    def export_person_view(self, request: HttpRequest) -> HttpResponse:
        """Ask whether to export a person, then request it, for owners only."""
        title = _("Export a person")
        return self.request_of_person(request, title, confirm_export, request_export, page="subject_export")

    def subject_export_view(self, request: HttpRequest) -> HttpResponse:
        """Return the page of an export, for owners only."""
        if "id" not in request.GET:
            return redirect(self.url("recipient"))
        export = find_request(request, SubjectExport, prefix="sxp_")
        refresh = refresh_of(export.status, export.counts, regions=("receipt",))
        return refresh.unchanged(request) or self.page(
            request,
            "dashboard/emails/subject_export.html",
            title=_("Export of a person"),
            refresh=refresh if export.status == "processing" else None,
            file_url=f"{self.url('subject_export_file')}?id={export.id}",
            **describe_export(export),
        )

    def subject_export_file_view(self, request: HttpRequest) -> HttpResponseBase:
        """Return the file of an export, for owners only."""
        if "id" not in request.GET:
            return redirect(self.url("recipient"))
        return download_export(request, find_request(request, SubjectExport, prefix="sxp_"))

    def detail_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        email = self.find(request, object_id)
        wait = find_wait(email)
        refresh = refresh_of(email.status, last_event_number(email), wait, regions=LIVE)
        if unchanged := refresh.unchanged(request):
            return unchanged
        names = ("preview", "message", "source", "attachment", "resend", "schedule", "cancel", "decide")
        urls = {name: self.url(name, email.id) for name in names}
        details = describe_email(email, streams=streams_of(request), wait=wait)
        return self.page(
            request,
            "dashboard/emails/detail.html",
            title=email.subject,
            urls=urls,
            refresh=refresh,
            may_approve=is_owner(request),
            **details,
        )

    def panel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the side panel of the list: the state of an email and its timeline."""
        email = self.find(request, object_id)
        request.current_app = self.admin_site.name
        urls = {name: self.url(name, email.id) for name in ("change", "preview", "resend", "cancel", "decide")}
        held = describe_held(email) if email.held else {}
        context = {"urls": urls, "may_approve": is_owner(request), **held, **summarize_email(email)}
        return render(request, "dashboard/emails/panel.html", context)

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

    def decide_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show an email that waits, and approve or reject it, for owners only."""
        email = self.find(request, object_id)
        back = self.url("change", email.id)
        if not is_owner(request):
            raise Http404
        if request.method == "POST":
            decide(request, email)
            return redirect(back)
        context = {"email": email, "back": back, "preview_url": self.url("preview", email.id), **describe_held(email)}
        return self.page(request, "dashboard/emails/decide.html", title=_("Approve an email"), **context)

    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        email = self.find(request, object_id)
        back = self.url("change", email.id)
        if request.method != "POST":
            lead = _("This email will not be sent, and its quota is refunded.")
            confirmation = Confirmation(
                lead, _("Cancel email"), back, about=email.subject, back_label=_("Keep email"), is_danger=True
            )
            return self.confirm(request, _("Cancel email"), confirmation)
        if try_action(request, lambda: cancel_once(email)):
            messages.success(request, _("The email was cancelled."))
        return redirect(back)
