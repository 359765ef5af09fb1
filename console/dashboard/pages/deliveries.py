"""Webhook deliveries: payload, attempts, and manual retry."""

import json
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import JSONField, OuterRef, Q, QuerySet, Subquery
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast, Coalesce, Left
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, reverse
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.ui.confirm import try_action
from console.dashboard.ui.labels import DELIVERY_TONES, WEBHOOK_ERRORS
from console.dashboard.ui.listing import ListPage, list_page
from console.dashboard.ui.refresh import refresh_of
from console.dashboard.ui.scoping import ScopedAdmin, rows_in_workspace
from core.lib.datetimes import parse_datetime
from core.lib.ids import is_id
from core.lib.worker.stages import Stage
from emails.models import Email
from events.kinds import WEBHOOK_KINDS, EventKind
from receiving.models import ReceivedEmail
from webhooks.models import PendingDelivery, Webhook, WebhookDelivery, WebhookDeliveryStatus, WebhookEvent
from webhooks.sending.signing import HEADERS
from webhooks.services import replay_delivery

SEARCHED_DELIVERIES = 2_000
MAX_SEARCH_LENGTH = 200
# Characters of a subject or an address in a list.
SHOWN = 120


class DeliverySection(ScopedAdmin):
    """Deliveries are listed on the page of their webhook; there is no list of all deliveries."""

    slug, title = "deliveries", gettext_lazy("Webhooks")

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookDelivery]:
        # The rows of a deleted webhook remain for a while.
        return super().get_queryset(request).filter(webhook__workspace=current_workspace(request))

    def get_urls(self) -> list[URLPattern]:
        return [
            self.route("<str:object_id>/", "change", self.detail_view),
            self.post_route("<str:object_id>/replay/", "replay", self.replay_view),
        ]

    @property
    def list_url(self) -> str:
        return reverse(f"{self.admin_site.name}:webhooks_webhook_changelist")

    def detail_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        delivery = self.find(request, object_id)
        refresh = refresh_of(delivery.status, delivery.attempt_count, regions=("state", "attempts", "facts"))
        if unchanged := refresh.unchanged(request):
            return unchanged
        pending = PendingDelivery.objects.filter(delivery=delivery).exclude(stage=Stage.LEASED).first()
        return self.page(
            request,
            "dashboard/webhooks/delivery.html",
            title=delivery.id,
            delivery=delivery,
            refresh=refresh,
            webhook=delivery.webhook,
            body=_format_json(delivery.event.body),
            attempts=[_describe_attempt(attempt) for attempt in reversed(delivery.attempts)],
            email_id=_find_email(request, delivery),
            received_id=_find_received(request, delivery),
            next_at=pending.due_at if pending else None,
            tone=DELIVERY_TONES[delivery.status],
            replay_url=self.url("replay", delivery.id),
        )

    def replay_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        delivery = self.find(request, object_id)
        if try_action(request, lambda: replay_delivery(delivery)):
            messages.success(request, _("The event will be sent again with the same id and payload."))
        return redirect(self.url("change", delivery.id))


def find_deliveries(request: HttpRequest, webhook: Webhook, rows: QuerySet[WebhookDelivery]) -> ListPage:
    """Return a page of the webhook's deliveries that match the query. rows: with the columns to read.

    Only the newest SEARCHED_DELIVERIES are searched for an event or a text: no index has them.
    """
    status, event = request.GET.get("status", ""), request.GET.get("event", "")
    text = request.GET.get("search", "").replace("\0", "").strip()[:MAX_SEARCH_LENGTH]
    if status in WebhookDeliveryStatus.values:
        rows = rows.filter(status=status)
    if not text and event not in WEBHOOK_KINDS:
        return list_page(request, rows)
    newest = WebhookDelivery.objects.filter(webhook=webhook).order_by("-created_at", "-id")
    rows = rows.filter(id__in=newest.values("id")[:SEARCHED_DELIVERIES])
    rows = rows.filter(kind=event) if event in WEBHOOK_KINDS else rows
    listing = list_page(request, rows.filter(_contains(text)) if text else rows)
    if not newest[SEARCHED_DELIVERIES : SEARCHED_DELIVERIES + 1].exists():
        return listing
    note = _("Searched the newest %(count)s deliveries only.")
    return replace(listing, note=note % {"count": number_format(SEARCHED_DELIVERIES, force_grouping=True)})


def add_texts(rows: QuerySet[WebhookDelivery]) -> QuerySet[WebhookDelivery]:
    """Add `named`, the address or domain that an event is about, and `subject`, that of its email, for a list."""
    data = KeyTransform("data", Cast("body", JSONField()))
    event = WebhookEvent.objects.filter(id=OuterRef("event_id"))
    named = Coalesce(*(Left(KeyTextTransform(name, data), SHOWN) for name in ("to", "email", "name")))
    subject = Left(KeyTextTransform("subject", data), SHOWN)
    # Not a join, which would hide a delivery whose event is deleted.
    return rows.annotate(
        named=Subquery(event.annotate(text=named).values("text")),
        subject=Subquery(event.annotate(text=subject).values("text")),
    )


def _contains(text: str) -> Q:
    """Return the condition for the id of a delivery or an event, or a part of the payload, such as a recipient."""
    for field, prefix in (("id", "whd_"), ("event_id", "evt_")):
        if is_id(text, prefix=prefix):
            return Q(**{field: text})
    return Q(event__body__icontains=text)


def retry_progress(delivery: WebhookDelivery) -> str:
    """Return the progress of a delivery that waits for its next attempt; empty for any other."""
    pending: PendingDelivery | None = getattr(delivery, "pending", None)
    if pending is None or not pending.attempts or delivery.next_attempt_at is None:
        return ""
    next_at = date_format(timezone.localtime(delivery.next_attempt_at), "H:i")
    values = {"made": pending.attempts, "all": len(settings.WEBHOOK_RETRY_SECONDS) + 1, "next": next_at}
    return _("Retrying, %(made)s of %(all)s, next %(next)s") % values


def describe_error(code: str) -> str:
    """Return the message of an attempt's error; empty without an error."""
    return str(WEBHOOK_ERRORS.get(code, code))


def _describe_attempt(attempt: dict[str, Any]) -> dict[str, Any]:
    """Return a stored attempt with its time parsed, its error as a message and the headers of its request."""
    error, headers = attempt.get("error"), attempt.get("headers")
    return {
        **attempt,
        "attempted_at": parse_datetime(str(attempt.get("at", ""))),
        "error_message": describe_error(str(error or "")),
        "headers": "\n".join(f"{name}: {value}" for name, value in {**HEADERS, **headers}.items()) if headers else "",
    }


def _find_email(request: HttpRequest, delivery: WebhookDelivery) -> str | None:
    """Return the id of the event's email in the workspace; None for a test, and if retention has deleted it."""
    emails = rows_in_workspace(current_workspace(request), Email.objects.values_list("id", flat=True))
    try:
        return str(emails.get(id=json.loads(delivery.event.body)["data"]["emailId"]))
    except (Email.DoesNotExist, ValueError, KeyError, TypeError):
        return None


def _find_received(request: HttpRequest, delivery: WebhookDelivery) -> str | None:
    """Return the id of the event's received email in the workspace; None for another event, and if it is deleted."""
    if delivery.kind != EventKind.RECEIVED:
        return None
    emails = rows_in_workspace(current_workspace(request), ReceivedEmail.objects.all())
    return emails.filter(event_id=delivery.event_id).values_list("id", flat=True).first()


def _format_json(body: str) -> str:
    try:
        return json.dumps(json.loads(body), ensure_ascii=False, indent=2)
    except ValueError:
        return body
