"""Staff admin of domains, without the sealed keys; staff give a receiving domain to another workspace."""

from typing import ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from core.workspaces.admin import ReadOnlyAdmin, StrictAdmin, state_column
from domains.models import Domain, ReceivingDomain, TrackingHost
from domains.receiving.services import move_receiving


@admin.register(Domain)
class DomainAdmin(ReadOnlyAdmin):
    list_display = ("name", "workspace", "state", "created_at", "verified_at")
    state = state_column()
    list_filter = ("status",)
    list_select_related = ("workspace",)
    search_fields = ("name",)
    help_texts: ClassVar = dict.fromkeys(("open_tracking", "click_tracking"), _("of emails without the option"))
    fields = (
        "id",
        "name",
        "workspace",
        "state",
        "tls",
        "open_tracking",
        "click_tracking",
        "tracking_host",
        "receiving_domain",
        "created_at",
        "verified_at",
        "last_checked_at",
        "missing_since",
        "check_due_at",
    )


@admin.register(TrackingHost)
class TrackingHostAdmin(ReadOnlyAdmin):
    list_display = ("name", "workspace", "state", "created_at", "proven_at", "retired_at")
    state = state_column()
    list_filter = ("status",)
    list_select_related = ("workspace",)
    search_fields = ("name",)
    fields = (
        "id",
        "name",
        "workspace",
        "domain",
        "state",
        "created_at",
        "seen_at",
        "proven_at",
        "retired_at",
    )


@admin.register(ReceivingDomain)
class ReceivingDomainAdmin(StrictAdmin):
    list_display = ("name", "workspace", "state", "created_at", "proven_at", "missing_since")
    state = state_column()
    list_filter = ("status",)
    list_select_related = ("workspace",)
    search_fields = ("name",)
    ordering = ("name", "-created_at", "-id")
    fields = readonly_fields = (
        "id",
        "name",
        "workspace",
        "domain",
        "status",
        "created_at",
        "proven_at",
        "missing_since",
    )
    actions = ("move",)

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    @admin.action(description=_("Give the name to this workspace"), permissions=["change"])
    def move(self, request: HttpRequest, chosen: QuerySet[ReceivingDomain]) -> None:
        """End the receiving of a name in other workspaces, so that the next check can begin it in the chosen one."""
        names = list(chosen.values_list("name", flat=True))
        if len(names) != len(set(names)):
            messages.error(request, _("Select only one workspace for each name."))
            return
        for receiving in chosen.select_related("workspace"):
            move_receiving(receiving)
        messages.success(request, _("The next check of the records lets these workspaces receive."))
