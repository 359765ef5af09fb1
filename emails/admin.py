"""Staff's view of emails: whether mail flows; what it says stays closed."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from unfold.paginator import InfinitePaginator

from emails.models import Email
from workspaces.admin import ReadOnlyAdmin
from workspaces.audit import Act, note


@admin.register(Email)
class EmailAdmin(ReadOnlyAdmin):
    # Counting millions of rows for a page number would take seconds.
    paginator = InfinitePaginator
    show_full_result_count = False
    list_display = ("subject", "workspace", "from_domain", "status", "created_at")
    list_filter = ("status",)
    list_select_related = ("workspace",)
    sortable_by = ()
    # The ids begin with the time, and theirs is the index that is not a workspace's.
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
        """Who is written to, and about what, is the owner's: he can read who of the staff has looked."""
        email = self.get_object(request, object_id)
        if email:
            note(email.workspace, Act.EMAIL_LOOKED_AT, about=email.id)
        shown: HttpResponseBase = super().change_view(request, object_id, *args, **kwargs)
        return shown
