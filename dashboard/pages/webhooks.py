"""Webhooks: where events are posted to, what was posted, and what was answered."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextInputWidget

from dashboard.ui.confirm import Question, succeeded
from dashboard.ui.current_workspace import current_workspace
from dashboard.ui.forms import WireForm
from dashboard.ui.labels import DELIVERY_TONES
from dashboard.ui.listing import Listing, listed
from dashboard.ui.scoping import ScopedAdmin
from webhooks.event_types import KINDS
from webhooks.models import Webhook, WebhookDelivery
from webhooks.serializers import WebhookInput
from webhooks.services import create_webhook, delete_webhook, rotate_secret, send_test, update_webhook

KIND_WORDS = {
    "sent": gettext_lazy("Sent: the receiving server took it"),
    "delivered": gettext_lazy("Delivered"),
    "bounced": gettext_lazy("Bounced for good"),
    "failed": gettext_lazy("Failed after all attempts"),
    "opened": gettext_lazy("Opened"),
    "clicked": gettext_lazy("Clicked a link"),
    "unsubscribed": gettext_lazy("Unsubscribed"),
    "complained": gettext_lazy("Reported as spam"),
    "deferred": gettext_lazy("Deferred: another attempt follows"),
}


class WebhookForm(WireForm):
    serializer, wire = WebhookInput, {"url": "url", "events": "events"}

    url = forms.CharField(
        label="URL",
        max_length=2048,
        strip=False,
        widget=UnfoldAdminTextInputWidget(
            {"type": "url", "autocomplete": "off", "placeholder": "https://shop.example/hooks/mail"}
        ),
        help_text=gettext_lazy("Events are posted here, signed with a secret."),
    )
    events = forms.MultipleChoiceField(
        label=gettext_lazy("Events"),
        choices=[(kind, KIND_WORDS[kind]) for kind in KINDS],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )


class WebhookPages(ScopedAdmin):
    slug, title = "webhooks", gettext_lazy("Webhooks")
    empty = (
        "webhook",
        gettext_lazy("No webhooks yet"),
        gettext_lazy("Your server is told what becomes of an email the moment it happens."),
    )
    ordering = ("-created_at", "-id")

    def routes(self) -> list[URLPattern]:
        return [
            self.route("add/", "add", self.add_view),
            self.route("<str:object_id>/", "change", self.detail_view),
            self.route("<str:object_id>/edit/", "edit", self.edit_view),
            self.act_route("<str:object_id>/test/", "test", self.test_view),
            self.act_route("<str:object_id>/enable/", "enable", self.enable_view),
            self.route("<str:object_id>/disable/", "disable", self.disable_view),
            self.route("<str:object_id>/rotate/", "rotate", self.rotate_view),
            self.route("<str:object_id>/delete/", "delete", self.remove_view),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        # At most 20 of them: no pages.
        rows = self.get_queryset(request)
        return self.page(request, "dashboard/webhooks/list.html", title=self.title, webhooks=rows)

    def add_view(self, request: HttpRequest, *_args: Any, **_named: Any) -> HttpResponse:
        form = WebhookForm(request.POST or None, initial={"events": ["delivered", "bounced", "failed"]})
        workspace = current_workspace(request)
        made = form.attempt(lambda: create_webhook(workspace, **form.values)) if form.is_valid() else None
        if made is None:
            return self.page(request, "dashboard/webhooks/new.html", title=_("New webhook"), form=form)
        webhook, secret = made
        self.log_addition(request, webhook, "Created.")
        return self._secret_page(request, webhook, secret)

    def detail_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        webhook = self.find(request, object_id)
        return self.page(
            request,
            "dashboard/webhooks/detail.html",
            title=webhook.url,
            webhook=webhook,
            listing=_deliveries(request, webhook),
            statuses=WebhookDelivery.Status.values,
            asked=request.GET.get("status", ""),
            tones=DELIVERY_TONES,
            urls={
                name: self.url(name, webhook.id) for name in ("edit", "test", "enable", "disable", "rotate", "delete")
            },
        )

    def edit_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        webhook = self.find(request, object_id)
        form = WebhookForm(request.POST or None, initial={"url": webhook.url, "events": webhook.events})
        changed = form.attempt(lambda: update_webhook(webhook, changes=form.values)) if form.is_valid() else None
        if changed is None:
            return self.page(request, "dashboard/webhooks/edit.html", title=_("Edit"), form=form)
        self.log_change(request, webhook, "Changed.")
        messages.success(request, _("The webhook is saved."))
        return redirect(self.url("change", webhook.id))

    def test_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        webhook = self.find(request, object_id)
        if succeeded(request, lambda: send_test(webhook)):
            messages.success(request, _("A test event is on its way; its delivery stands on top of the list."))
        return redirect(self.url("change", webhook.id))

    def enable_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._turn(request, object_id, active=True, done=_("The webhook is on again."))

    def disable_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        if request.method == "POST":
            return self._turn(request, object_id, active=False, done=_("The webhook is off."))
        webhook = self.find(request, object_id)
        lead = _(
            "Nothing more is posted there, and what waits is discarded. Events in the meantime are not posted later."
        )
        question = Question(lead, _("Turn off"), self.url("change", webhook.id), about=webhook.url, is_danger=True)
        return self.ask(request, _("Turn off"), question)

    def rotate_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        webhook = self.find(request, object_id)
        if request.method != "POST":
            lead = _("A new secret is shown once. The old one signs beside it for 24 hours, so that nothing is lost.")
            question = Question(lead, _("Rotate secret"), self.url("change", webhook.id), about=webhook.url)
            return self.ask(request, _("Rotate secret"), question)
        secret = rotate_secret(webhook)
        self.log_change(request, webhook, "Rotated the secret.")
        return self._secret_page(request, webhook, secret)

    def remove_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        webhook = self.find(request, object_id)
        if request.method != "POST":
            lead = _("Nothing more is posted there, and the log of its deliveries goes with it.")
            question = Question(lead, _("Delete webhook"), self.url("change", webhook.id), webhook.url, is_danger=True)
            return self.ask(request, _("Delete webhook"), question)
        if succeeded(request, lambda: delete_webhook(webhook)):
            messages.success(request, _("The webhook is deleted."))
        return redirect(self.list_url)

    def _turn(self, request: HttpRequest, object_id: str, *, active: bool, done: str) -> HttpResponse:
        webhook = self.find(request, object_id)
        if succeeded(request, lambda: update_webhook(webhook, changes={"active": active})):
            self.log_change(request, webhook, "Turned on." if active else "Turned off.")
            messages.success(request, done)
        return redirect(self.url("change", webhook.id))

    def _secret_page(self, request: HttpRequest, webhook: Webhook, secret: str) -> HttpResponse:
        # Shown in this very answer and kept nowhere else: no session, message or log ever holds it.
        next_url = self.url("change", webhook.id)
        return self.page(request, "dashboard/webhooks/secret.html", title=webhook.url, secret=secret, next_url=next_url)


def _deliveries(request: HttpRequest, webhook: Webhook) -> Listing:
    """Return the log of a webhook; it never reads the answers, which may be 4 kB an attempt."""
    rows = WebhookDelivery.objects.filter(webhook=webhook).select_related("pending").defer("attempts")
    status = request.GET.get("status", "")
    return listed(request, rows.filter(status=status) if status in WebhookDelivery.Status.values else rows)
