"""The audit log: who did what to this workspace. For owners; it shows people's addresses."""

from typing import Any

from django.http import HttpRequest
from unfold.decorators import display

from dashboard.choice import is_owner
from dashboard.scoping import ScopedAdmin
from dashboard.words import moment, shortened
from workspaces.models import AuditEntry


class AuditPages(ScopedAdmin):
    slug, title = "audit", "Audit log"
    empty = ("history", "Nothing yet", "What people and API keys change in this workspace is written down here.")
    list_display = ("what", "who", "source", "at")
    list_display_links = None
    ordering = ("-id",)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_owner(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_owner(request) and super().has_view_permission(request, obj)

    @display(description="What", header=True)
    def what(self, entry: AuditEntry) -> list[str]:
        return [entry.get_act_display(), shortened(entry.about)]

    @display(description="Who")
    def who(self, entry: AuditEntry) -> str:
        # Which of the staff it was is the operator's matter.
        if entry.actor_kind == AuditEntry.Actor.STAFF:
            return "staff of this service"
        return shortened(entry.actor, to=50) or "this service"

    @display(description="From")
    def source(self, entry: AuditEntry) -> str:
        return "-" if entry.actor_kind == AuditEntry.Actor.STAFF else entry.address or "-"

    @display(description="When (UTC)")
    def at(self, entry: AuditEntry) -> str:
        return moment(entry.created_at)
