"""Deliveries of webhooks: what was posted, every attempt, and once more by hand."""

import json
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.ui.confirm import succeeded
from dashboard.ui.current_workspace import current_workspace
from dashboard.ui.labels import DELIVERY_TONES, ERROR_WORDS
from dashboard.ui.scoping import ScopedAdmin
from lib.datetimes import parse_datetime
from webhooks.models import Pending, WebhookDelivery
from webhooks.services import replay_delivery


class DeliveryPages(ScopedAdmin):
    """Reached from their webhook, whose page lists them; there is no list of all."""

    slug, title = "deliveries", gettext_lazy("Webhooks")

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookDelivery]:
        # Of a webhook that was deleted the rows outlive it for a while.
        return super().get_queryset(request).filter(webhook__workspace=current_workspace(request))

    def get_urls(self) -> list[URLPattern]:
        return [
            self.route("<str:object_id>/", "change", self.detail_view),
            self.act_route("<str:object_id>/replay/", "replay", self.replay_view),
        ]

    @property
    def list_url(self) -> str:
        return reverse(f"{self.admin_site.name}:webhooks_webhook_changelist")

    def detail_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        delivery = self.find(request, object_id)
        pending = Pending.objects.filter(delivery=delivery).exclude(stage=Pending.Stage.LEASED).first()
        return self.page(
            request,
            "dashboard/webhooks/delivery.html",
            title=delivery.id,
            delivery=delivery,
            webhook=delivery.webhook,
            body=_pretty(delivery.event.body),
            attempts=[_attempt(attempt) for attempt in reversed(delivery.attempts)],
            next_at=pending.due_at if pending else None,
            tone=DELIVERY_TONES[delivery.status],
            replay_url=self.url("replay", delivery.id),
        )

    def replay_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        delivery = self.find(request, object_id)
        if succeeded(request, lambda: replay_delivery(delivery)):
            messages.success(request, _("The event is posted again, with the same id and the same bytes."))
        return redirect(self.url("change", delivery.id))


def _attempt(kept: dict[str, Any]) -> dict[str, Any]:
    """Return an attempt with its moment read and its error in words."""
    error = kept.get("error")
    at = parse_datetime(str(kept.get("at", "")))
    return {**kept, "moment": at, "why": str(ERROR_WORDS.get(str(error), error or ""))}


def _pretty(body: str) -> str:
    try:
        return json.dumps(json.loads(body), ensure_ascii=False, indent=2)
    except ValueError:
        return body
