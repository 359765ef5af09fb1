"""Audit log of the workspace. Owners only: it shows IP and email addresses."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from dashboard.ui.current_workspace import is_owner
from dashboard.ui.scoping import ScopedAdmin


class AuditSection(ScopedAdmin):
    slug, title = "audit", _("Audit log")
    empty = ("history", _("No entries yet"), _("Changes made by members and API keys are listed here."))
    ordering = ("-id",)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_owner(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_owner(request) and super().has_view_permission(request, obj)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if not is_owner(request):
            raise PermissionDenied
        return super().changelist_view(request, extra_context)
