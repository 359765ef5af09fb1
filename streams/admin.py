"""Streams in the staff admin, where staff resume a paused one."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from streams.models import Stream
from streams.services import resume_stream
from workspaces.admin import ReadOnlyAdmin


@admin.register(Stream)
class StreamAdmin(ReadOnlyAdmin):
    list_display = ("slug", "workspace", "name", "kind", "paused_at", "archived_at", "created_at")
    list_filter = ("kind",)
    list_select_related = ("workspace",)
    search_fields = ("slug", "name")
    ordering = ("-created_at", "-id")
    fields = (
        "id", "slug", "workspace", "name", "kind", "priority", "paused_at", "paused_reason", "archived_at",
        "created_at",
    )  # fmt: skip
    actions = ("resume",)

    def has_resume_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("streams.change_stream")

    @admin.action(description=_("Resume paused streams"), permissions=["resume"])
    def resume(self, request: HttpRequest, streams: QuerySet[Stream]) -> None:
        for stream in streams.select_related("workspace"):
            resume_stream(stream.workspace, stream.slug)
        messages.success(request, _("The selected streams are sent again."))
