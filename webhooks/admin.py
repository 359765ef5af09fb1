"""Webhooks and deliveries in the staff admin, without secrets, bodies and answers."""

from typing import ClassVar

from django.contrib import admin
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from core.workspaces.admin import ReadOnlyAdmin, StateFilter, state_column
from webhooks.models import Webhook, WebhookDelivery


class WebhookStateFilter(StateFilter):
    choices_by_value: ClassVar = {"working": _("Working"), "failing": _("Failing"), "disabled": _("Disabled")}
    conditions: ClassVar = {
        "working": Q(active=True, failing_since=None),
        "failing": Q(active=True, failing_since__isnull=False),
        "disabled": Q(active=False),
    }


@admin.register(Webhook)
class WebhookAdmin(ReadOnlyAdmin):
    list_display = ("url", "workspace", "active", "disabled_reason", "failing_since", "created_at")
    list_filter = (WebhookStateFilter,)
    list_select_related = ("workspace",)
    search_fields = ("url",)
    help_texts: ClassVar = {
        "pace": _("maximum number of attempts at a time"),
        "failing_since": _("first failure since the last success"),
    }
    fields = ("id", "url", "workspace", "events", "active", "disabled_reason", "pace", "failing_since", "created_at")


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "workspace",
        "webhook",
        "kind",
        "state",
        "attempt_count",
        "status_code",
        "error",
        "created_at",
    )
    state = state_column()
    list_filter = ("status", "kind")
    list_select_related = ("workspace", "webhook")
    help_texts: ClassVar = {
        "status_code": _("of the last response"),
        "error": _("of the last attempt"),
        "succeeded_at": _("time of the first success"),
    }
    fields = (
        "id",
        "workspace",
        "webhook",
        "event",
        "kind",
        "is_test",
        "state",
        "attempt_count",
        "status_code",
        "error",
        "created_at",
        "succeeded_at",
    )

    @admin.display(description=_("event ID"))
    def event(self, delivery: WebhookDelivery) -> str:
        return delivery.event_id
