"""Emails in the staff admin: delivery status and addresses, never content."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from unfold.paginator import InfinitePaginator

from emails.models import Email
from workspaces.admin import ReadOnlyAdmin
from workspaces.audit import AuditAction, record_action


@admin.register(Email)
class EmailAdmin(ReadOnlyAdmin):
    # Counting millions of rows for page numbers takes seconds.
    paginator = InfinitePaginator
    show_full_result_count = False
    list_display = ("subject", "workspace", "from_domain", "status", "created_at")
    list_filter = ("status",)
    list_select_related = ("workspace",)
    sortable_by = ()
    # Ids begin with the time, and only their index spans all workspaces.
    ordering = ("-id",)
    fields = (
        "id",
        "workspace",
        "sender",
        "to",
        "subject",
        "status",
        "created_at",
        "scheduled_for",
        "sent_at",
        "delivered_at",
        "retry_count",
        "error_message",
    )

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Show an email and record the view in the audit log, which the workspace's owner can read."""
        email = self.get_object(request, object_id)
        if email:
            record_action(email.workspace, AuditAction.EMAIL_VIEWED, about=email.id)
        response: HttpResponseBase = super().change_view(request, object_id, *args, **kwargs)
        return response
