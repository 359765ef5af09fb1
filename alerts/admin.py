"""Alerts in the staff admin: read only, since they belong to the owners of a workspace."""

from django.contrib import admin

from alerts.models import Alert
from core.workspaces.admin import ReadOnlyAdmin


@admin.register(Alert)
class AlertAdmin(ReadOnlyAdmin):
    list_display = ("metric", "stream", "threshold", "workspace", "triggered_at", "last_triggered_at", "created_at")
    list_filter = ("metric",)
    list_select_related = ("workspace",)
    ordering = ("-created_at", "-id")
    fields = (
        "id", "workspace", "metric", "stream", "threshold", "email_owners", "triggered_at", "last_triggered_at",
        "created_at",
    )  # fmt: skip
