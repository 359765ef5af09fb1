"""Received emails: list, message with its verdict and conversation, downloads, and the actions on one.

Answer, forward, release, rereading, redelivery and deletion.
"""

import secrets
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import URLPattern, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.pages.receiving.answers import AnswerForm, ForwardForm, suggest_senders
from console.dashboard.pages.receiving.details import (
    describe_received,
    describe_source,
    find_original,
    read_deliveries,
    shown_text,
)
from console.dashboard.pages.receiving.search import ReceivedListFilters, find_received
from console.dashboard.ui.confirm import Confirmation, try_action
from console.dashboard.ui.inbox import has_inbox
from console.dashboard.ui.labels import RECEIVED_TONES
from console.dashboard.ui.preview import preview_response
from console.dashboard.ui.refresh import Refresh, refresh_of
from console.dashboard.ui.scoping import ScopedAdmin
from core.lib.email_addresses import Address
from receiving.answers.answering import find_addressee
from receiving.api.downloads import attachment_response, raw_response
from receiving.arrival.shared_addresses import shared_address
from receiving.forwarding.targets import confirmed_targets
from receiving.models import InboundRoute, Message, ReceivedEmail
from receiving.services import bypass_block, delete_email, redeliver_email
from receiving.source import html_with_images, preview_kind, preview_text
from receiving.states import ReceivedStatus
from receiving.unread.rereading import reread_email
from webhooks.models import WebhookDelivery

# Filters beside the status and the search field.
MORE_FILTERS = ("recipient", "from", "subject", "tag", "routeId", "emailId", "test", "after", "before")
FILTERS = ("status", "search", *MORE_FILTERS)
# The parts of a message's page that change after it was read; before, all of it does.
LIVE = ("state", "deliveries")
# Views that change or send something.
ACTIONS = ("answer", "forward", "release", "reread", "redeliver", "delete")


class ReceivedSection(ScopedAdmin):
    slug, title = "received", gettext_lazy("Received")
    empty = (
        "mark_email_unread",
        gettext_lazy("Nothing received yet"),
        gettext_lazy("Emails to the addresses of this workspace are listed here, newest first."),
    )
    ordering = ("-received_at", "-id")
    statuses = tuple(ReceivedStatus.values)

    def routes(self) -> list[URLPattern]:
        return [
            self.route("<str:object_id>/", "change", self.detail_view),
            self.route("<str:object_id>/preview/", "preview", self.preview_view),
            self.route("<str:object_id>/message/", "message", self.message_view),
            self.route("<str:object_id>/source/", "source", self.source_view),
            self.route("<str:object_id>/attachment/", "attachment", self.attachment_view),
            self.route("<str:object_id>/text/", "text", self.text_view),
            self.route("<str:object_id>/answer/", "answer", self.answer_view),
            self.route("<str:object_id>/forward/", "forward", self.forward_view),
            self.route("<str:object_id>/release/", "release", self.release_view),
            self.route("<str:object_id>/reread/", "reread", self.reread_view),
            self.post_route("<str:object_id>/redeliver/", "redeliver", self.redeliver_view),
            self.route("<str:object_id>/delete/", "delete", self.remove_view),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ReceivedEmail]:
        emails: Any = super().get_queryset(request)
        rows: QuerySet[ReceivedEmail] = emails.without_content()
        return rows

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        workspace, emails = current_workspace(request), self.get_queryset(request).order_by(*self.ordering)
        form = ReceivedListFilters(request.GET, emails).form
        filters = {name: value for name, value in form.cleaned_data.items() if value} if form.is_valid() else {}
        listing = find_received(request, emails, filters=filters)
        refresh = refresh_of([(email.id, email.status) for email in listing.rows], regions=("rows",))
        return refresh.unchanged(request) or self.page(
            request,
            "dashboard/received/list.html",
            title=self.title,
            listing=listing,
            address=shared_address(workspace),
            query=request.GET,
            errors=[str(error) for errors in form.errors.values() for error in errors],
            is_filtered=any(request.GET.get(name) for name in FILTERS),
            has_more_filters=any(request.GET.get(name) for name in MORE_FILTERS),
            inbound_routes=InboundRoute.objects.filter(workspace=workspace).only("name"),
            tones=RECEIVED_TONES,
            # A search reads many emails.
            refresh=None if filters else refresh,
        )

    def detail_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        email = self.find(request, object_id)
        deliveries = read_deliveries(email)
        refresh = _refresh(email, deliveries)
        if unchanged := refresh.unchanged(request):
            return unchanged
        names = ("preview", "message", "source", "attachment", "text", *ACTIONS)
        return self.page(
            request,
            "dashboard/received/detail.html",
            title=email.subject,
            refresh=refresh,
            urls={name: self.url(name, email.id) for name in names},
            block_url=f"{reverse('dashboard:receiving_senderblock_add')}?{urlencode({'sender': email.sender})}",
            **describe_received(email, deliveries),
        )

    def preview_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        html = html_with_images(self._message(request, object_id))
        if not html:
            raise Http404
        return preview_response(html)

    def message_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the headers and the source, for the page of the message."""
        message = self._message(request, object_id)
        return render(request, "dashboard/emails/message.html", describe_source(message))

    def source_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        return raw_response(request, self.find(request, object_id))

    def attachment_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Return the attachment at the requested position, from 0. Raises Http404 if there is none."""
        email = self.find(request, object_id)
        return attachment_response(request, email, _position(request, email))

    def text_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the beginning of an attachment as text, for the page of the message. Raises Http404 for others."""
        email = self.find(request, object_id)
        entry = email.message.attachments[_position(request, email)]
        if preview_kind(entry) != "text":
            raise Http404
        text, is_cut = preview_text(email.message, entry)
        return render(request, "dashboard/received/text.html", {"text": text, "is_cut": is_cut})

    def answer_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        email, addressee = self._find_answerable(request, object_id)
        senders = suggest_senders(email.workspace, email, find_original(email))
        form = AnswerForm(request.POST or None, email=email, senders=senders)
        if form.is_valid() and form.send(request):
            messages.success(request, _("The answer to %(address)s was accepted.") % {"address": addressee})
            return redirect(f"{self.url('change', email.id)}#conversation")
        nonce = request.POST.get("nonce") or secrets.token_urlsafe(16)
        context = {"title": _("Answer"), "addressee": addressee, "email": email, "nonce": nonce, "senders": senders}
        return self.page(request, "dashboard/received/answer.html", form=form, shown=shown_text(email), **context)

    def forward_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        email = self.find(request, object_id)
        form = ForwardForm(request.POST or None)
        if form.is_valid() and (forward := form.send(email)):
            messages.success(request, _("The forward to %(address)s was accepted.") % {"address": forward.address})
            return redirect(f"{self.url('change', email.id)}#forwards")
        context = {"title": _("Forward"), "email": email, "targets": sorted(confirmed_targets(email.workspace))}
        return self.page(request, "dashboard/received/forward.html", form=form, inbox_url=system_inbox_url(), **context)

    def release_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        email = self.find(request, object_id)
        back = self.url("change", email.id)
        if request.method != "POST":
            lead = _("The email is delivered to the webhooks as if no rule had blocked it.")
            return self.confirm(request, _("Release"), Confirmation(lead, _("Release"), back, about=email.subject))
        if try_action(request, lambda: bypass_block(email)):
            self.log_change(request, email, "Released.")
            messages.success(request, _("The email was released."))
        return redirect(back)

    def reread_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        email = self.find(request, object_id)
        back = self.url("change", email.id)
        if request.method != "POST":
            lead = _(
                "The message is read again. If that succeeds, the email is shown and delivered to the webhooks with "
                "its content, also if it was delivered without it before."
            )
            return self.confirm(
                request, _("Read again"), Confirmation(lead, _("Read again"), back, about=email.subject)
            )
        if try_action(request, lambda: reread_email(email)):
            self.log_change(request, email, "Queued to be read again.")
            messages.success(request, _("The message will be read again."))
        return redirect(back)

    def redeliver_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        email, count = self.find(request, object_id), 0

        def redeliver() -> None:
            nonlocal count
            count = redeliver_email(email, webhook_ids=None)

        if try_action(request, redeliver):
            _report_deliveries(request, count)
        return redirect(self.url("change", email.id))

    def remove_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        email = self.find(request, object_id)
        if request.method != "POST":
            lead = _("The email will be deleted with its attachments and its webhook deliveries.")
            back = self.url("change", email.id)
            confirmation = Confirmation(lead, _("Delete"), back, about=email.subject, is_danger=True)
            return self.confirm(request, _("Delete received email"), confirmation)
        if try_action(request, lambda: delete_email(email)):
            messages.success(request, _("The received email was deleted."))
        return redirect(self.list_url)

    def _find_answerable(self, request: HttpRequest, object_id: str) -> tuple[ReceivedEmail, Address]:
        """Return an email and the address of its answer. Raises Http404 if there is none."""
        email = self.find(request, object_id)
        addressee = find_addressee(email.message)
        if addressee is None or email.message.read_at is None:
            raise Http404
        return email, addressee

    def _message(self, request: HttpRequest, object_id: str) -> Message:
        return Message.objects.get(id=self.find(request, object_id).message_id)


def _position(request: HttpRequest, email: ReceivedEmail) -> int:
    """Return the requested position of an attachment, from 0. Raises Http404 if there is none."""
    position = request.GET.get("position", "0")
    if position not in map(str, range(len(email.message.attachments))):
        raise Http404
    return int(position)


def system_inbox_url() -> str:
    """Return the page of the staff with the system emails of a trial, such as links to confirm; empty elsewhere."""
    return reverse("admin:inbox_caughtmail_changelist") if has_inbox() else ""


def _refresh(email: ReceivedEmail, deliveries: Sequence[WebhookDelivery]) -> Refresh:
    statuses = [(delivery.id, delivery.status) for delivery in deliveries]
    # Before a message is read, and before it is read again.
    is_waiting = email.message.read_at is None
    return refresh_of(email.status, is_waiting, statuses, regions=("received",) if is_waiting else LIVE)


def _report_deliveries(request: HttpRequest, count: int) -> None:
    if not count:
        messages.warning(request, _("No webhook subscribes to received emails."))
        return
    text = ngettext("%(count)s delivery was queued.", "%(count)s deliveries were queued.", count)
    messages.success(request, text % {"count": count})
