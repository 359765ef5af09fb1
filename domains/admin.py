"""Staff admin of domains, without the sealed keys."""

from django.contrib import admin

from domains.models import Domain, TrackingHost
from workspaces.admin import ReadOnlyAdmin


@admin.register(Domain)
class DomainAdmin(ReadOnlyAdmin):
    list_display = ("name", "workspace", "status", "created_at", "verified_at")
    list_filter = ("status",)
    list_select_related = ("workspace",)
    search_fields = ("name",)
    fields = (
        "id",
        "name",
        "workspace",
        "status",
        "tls",
        "open_tracking",
        "click_tracking",
        "tracking_host",
        "created_at",
        "verified_at",
        "last_checked_at",
        "missing_since",
        "check_due_at",
    )


@admin.register(TrackingHost)
class TrackingHostAdmin(ReadOnlyAdmin):
    list_display = ("name", "workspace", "status", "created_at", "proven_at", "retired_at")
    list_filter = ("status",)
    list_select_related = ("workspace",)
    search_fields = ("name",)
    fields = (
        "id",
        "name",
        "workspace",
        "domain",
        "status",
        "created_at",
        "seen_at",
        "proven_at",
        "retired_at",
    )
