"""The staff's admin site, at /admin/."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, URLResolver

from config.operations import operations
from dashboard.auth.access import GatedSite
from workspaces.account_status import must_have_second_factor


class StaffSite(GatedSite):
    site_title = "Postrider staff"
    site_header = "Postrider staff"
    index_title = "Operations"
    index_template = "dashboard/operations.html"

    def has_permission(self, request: HttpRequest) -> bool:
        return bool(super().has_permission(request)) and not lacks_second_factor(request)

    def get_urls(self) -> list[URLPattern | URLResolver]:
        return [*self.gate_urls(), *super().get_urls()]

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Send staff who still have to set their second factor up to where that is done."""
        if request.method == "GET" and super().has_permission(request) and lacks_second_factor(request):
            return redirect("admin:security")
        return super().login(request, extra_context)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        response: HttpResponse = super().index(request, {**operations(), **(extra_context or {})})
        return response


def lacks_second_factor(request: HttpRequest) -> bool:
    user: Any = request.user
    return must_have_second_factor(user) and user.second_factor_at is None
