"""Receiving in the staff admin: received emails without content, routes, and the use of each workspace."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from core.workspaces.admin import ReadOnlyAdmin, state_column
from core.workspaces.audit import AuditAction, record_action
from receiving.models import InboundRoute, ReceivedEmail, ReceivingUsage


@admin.register(ReceivedEmail)
class ReceivedEmailAdmin(ReadOnlyAdmin):
    # Counting millions of rows for page numbers takes seconds.
    paginator = InfinitePaginator
    show_full_result_count = False
    list_display = ("recipient", "workspace", "state", "blocked_reason", "stored_size", "is_test", "received_at")
    state = state_column()
    list_filter = ("status",)
    list_select_related = ("workspace",)
    sortable_by = ()
    # Ids begin with the time, and only their index spans all workspaces.
    ordering = ("-id",)
    fields = (
        "id", "workspace", "recipient", "sender", "subject", "state", "blocked_reason", "stored_size", "is_test",
        "reply_email_id", "received_at", "processed_at", "expires_at",
    )  # fmt: skip
    readonly_fields = ("stored_size", "reply_email_id")

    @display(description=_("size"))
    def stored_size(self, email: ReceivedEmail) -> str:
        return str(filesizeformat(email.size))

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Show a received email and record the view in the audit log, which the workspace's owner can read."""
        email = self.get_object(request, unquote(object_id))
        if email:
            record_action(email.workspace, AuditAction.EMAIL_VIEWED, about=email.id)
        response: HttpResponseBase = super().change_view(request, object_id, *args, **kwargs)
        return response


@admin.register(InboundRoute)
class RouteAdmin(ReadOnlyAdmin):
    list_display = ("name", "workspace", "match", "domain", "action", "priority", "active")
    list_filter = ("action", "active")
    list_select_related = ("workspace",)
    ordering = ("-created_at", "-id")
    fields = (
        "id", "workspace", "name", "domain", "match", "priority", "action", "require_authenticated", "replies_only",
        "spam_above", "store_days", "active", "created_at",
    )  # fmt: skip
    readonly_fields = fields


@admin.register(ReceivingUsage)
class ReceivingUsageAdmin(ReadOnlyAdmin):
    """The volume of each workspace, the largest first."""

    list_display = ("workspace", "stored", "messages", "day")
    list_select_related = ("workspace",)
    ordering = ("-stored_bytes",)
    fields = ("workspace", "stored", "messages", "day")
    readonly_fields = ("stored",)

    @display(description=_("stored"), ordering="stored_bytes")
    def stored(self, usage: ReceivingUsage) -> str:
        return str(filesizeformat(usage.stored_bytes))
