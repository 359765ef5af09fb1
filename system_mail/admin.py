"""System emails in the admin: their state only. The text is hidden because its links give access to accounts."""

from django.contrib import admin

from system_mail.models import SystemMail
from workspaces.admin import ReadOnlyAdmin


@admin.register(SystemMail)
class SystemMailAdmin(ReadOnlyAdmin):
    list_display = ("kind", "recipient", "state", "attempts", "created_at", "finished_at")
    list_filter = ("kind", "state")
    ordering = ("-created_at", "-id")
    fields = ("id", "kind", "recipient", "subject", "state", "attempts", "reply", "created_at", "due_at", "finished_at")
