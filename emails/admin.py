"""Emails in the staff admin: delivery status and addresses, never content."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from emails.models import Email
from events.kinds import NEXT_TRANSPORT, TRANSPORT
from workspaces.admin import ReadOnlyAdmin
from workspaces.audit import AuditAction, record_action

MAX_ATTEMPTS = 50


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
        "transports",
    )

    @display(description=_("transports"))
    def transports(self, email: Email) -> str:
        """The attempts by named transports, oldest first; the staff see them whatever SHOW_TRANSPORTS is."""
        named = email.events.filter(**{f"payload__{TRANSPORT}__isnull": False})[:MAX_ATTEMPTS]
        return "; ".join(_describe_attempt(event.kind, event.payload) for event in named) or "-"

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Show an email and record the view in the audit log, which the workspace's owner can read."""
        email = self.get_object(request, object_id)
        if email:
            record_action(email.workspace, AuditAction.EMAIL_VIEWED, about=email.id)
        response: HttpResponseBase = super().change_view(request, object_id, *args, **kwargs)
        return response


def _describe_attempt(kind: str, payload: dict[str, Any]) -> str:
    """Return an attempt as text, such as `own: deferred (login_refused) → relay`."""
    reason = f" ({payload['reason']})" if payload.get("reason") else ""
    following = f" → {payload[NEXT_TRANSPORT]}" if payload.get(NEXT_TRANSPORT) else ""
    return f"{payload[TRANSPORT]}: {kind}{reason}{following}"
