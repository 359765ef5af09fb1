"""Staff's view of emails: whether mail flows; what it says stays closed."""

from django.contrib import admin
from unfold.paginator import InfinitePaginator

from emails.models import Email
from workspaces.admin import ReadOnlyAdmin


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
