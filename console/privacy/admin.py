"""Erasures and exports in the staff admin: their progress, without addresses and files."""

from django.contrib import admin

from console.privacy.models import Erasure, SubjectExport
from core.workspaces.admin import ReadOnlyAdmin


@admin.register(Erasure)
class ErasureAdmin(ReadOnlyAdmin):
    list_display = ("id", "workspace", "created_at", "waiting", "completed_at")
    list_select_related = ("workspace",)
    ordering = ("-created_at", "-id")
    fields = ("id", "workspace", "created_at", "keep_suppression", "waiting", "passes", "completed_at")


@admin.register(SubjectExport)
class SubjectExportAdmin(ReadOnlyAdmin):
    list_display = ("id", "workspace", "created_at", "size", "completed_at", "expires_at")
    list_select_related = ("workspace",)
    ordering = ("-created_at", "-id")
    fields = ("id", "workspace", "created_at", "size", "left_out", "completed_at", "expires_at")
