"""Workspace dashboard at /dashboard/: a Django admin site scoped to a workspace of the signed-in user."""

from functools import partial
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, include, path, re_path, reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from console.dashboard.auth.access import TwoFactorSite
from console.dashboard.auth.current_workspace import current_workspace, switch_workspace, workspaces_of
from console.dashboard.auth.email_confirmation import confirm_email, resend_confirmation
from console.dashboard.auth.invitation import invitation
from console.dashboard.auth.password_reset import new_password, reset
from console.dashboard.auth.passwords import for_passwords
from console.dashboard.auth.signup import sign_up
from console.dashboard.pages.bounces.page import bounces
from console.dashboard.pages.domains.shared import shared_records
from console.dashboard.pages.emails.approvals import decide_by_link, preview_by_link
from console.dashboard.pages.onboarding import send_test_email
from console.dashboard.pages.overview.page import overview, read_refresh
from console.dashboard.pages.palette.entries import find_entries
from console.dashboard.pages.usage import usage
from console.dashboard.ui.guides import guide_url
from console.dashboard.ui.navigation import shortcuts


class DashboardSite(TwoFactorSite):
    """Lists every URL explicitly, which leaves out the admin's extra views (autocompletion, shortcuts)."""

    settings_name = "DASHBOARD"
    password_change_template = "dashboard/password.html"  # noqa: S105 - a template's name
    password_change_done_template = "dashboard/password_done.html"  # noqa: S105

    def has_permission(self, request: HttpRequest) -> bool:
        return bool(workspaces_of(request))

    def get_urls(self) -> list[URLPattern | URLResolver]:
        of_staff = partial(for_passwords, of_staff=True)
        return [
            path("", self.admin_view(self.index), name="index"),
            path("login/", self.login, name="login"),
            path("logout/", self.logout, name="logout"),
            *self.account_urls(),
            path("signup/", never_cache(for_passwords(self.as_page(sign_up))), name="signup"),
            path("invitation/", never_cache(self.as_page(invitation)), name="invitation"),
            path("records/", never_cache(self.as_page(shared_records)), name="shared_records"),
            path("reset/", never_cache(of_staff(self.as_page(reset))), name="reset"),
            path("reset/new/", never_cache(of_staff(self.as_page(new_password))), name="new_password"),
            path("approval/", never_cache(self.as_page(decide_by_link)), name="approval"),
            path("approval/preview/", never_cache(self.as_page(preview_by_link)), name="approval_preview"),
            path("proof/", never_cache(self.as_page(confirm_email)), name="confirm_email"),
            path("proof/again/", self.admin_view(resend_confirmation), name="resend_confirmation"),
            path("password/", self.admin_view(self.password_change), name="password_change"),
            path("password/done/", self.admin_view(self.password_change_done), name="password_change_done"),
            path("workspace/", self.admin_view(switch_workspace), name="switch_workspace"),
            path("test-email/", self.admin_view(send_test_email), name="send_test_email"),
            path("usage/", self.admin_view(self.usage), name="usage"),
            path("bounces/", self.admin_view(self.bounces), name="bounces"),
            path("search/", self.admin_view(self.search), name="search"),
            path("palette/", self.admin_view(self.palette), name="palette"),
            path("jsi18n/", self.admin_view(self.i18n_javascript, cacheable=True), name="jsi18n"),
            *(path(f"{section.slug}/", include(section.urls)) for section in self._registry.values()),
            re_path(r"(?P<url>.*)$", self.admin_view(self.catch_all_view)),
        ]

    def not_found_texts(self, request: HttpRequest) -> dict[str, str]:
        advice = _("It may have been deleted, or belong to another workspace. You are in the workspace %(workspace)s.")
        workspace = current_workspace(request).name
        return {"reason": _("This page does not exist in this workspace"), "advice": advice % {"workspace": workspace}}

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return no apps: console.dashboard.ui.navigation builds the sidebar."""
        return []

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        workspace = current_workspace(request) if workspaces_of(request) else None
        return {
            **super().each_context(request),
            "is_signup_open": settings.SIGNUP == "open" and settings.PASSWORDS == "on",
            "guide": guide_url(request),
            "shortcuts": shortcuts(request),
            "palette_url": reverse("dashboard:palette") if workspace else "",
            "workspace_id": workspace.id if workspace else "",
            "is_unconfirmed": workspace is not None and not workspace.is_proven,
            "deleted_workspace": workspace if workspace and workspace.is_deleted else None,
        }

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        refresh = read_refresh(request)
        if unchanged := refresh.unchanged(request):
            return unchanged
        context = overview(request)
        # Without emails the page has none of the regions.
        context["refresh"] = refresh if context["has_emails"] else None
        return self.page(request, "dashboard/overview.html", title=_("Overview"), **context)

    def usage(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        return self.page(request, "dashboard/usage.html", title=_("Usage"), **usage(request))

    def bounces(self, request: HttpRequest) -> TemplateResponse:
        return self.page(request, "dashboard/bounces/page.html", title=_("Bounces"), **bounces(request))

    def palette(self, request: HttpRequest) -> HttpResponse:
        """Return the entries of the command palette as a fragment."""
        return render(request, "dashboard/parts/palette_entries.html", find_entries(request, self._registry.values()))

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Return no results: unfold caches them per user and term, regardless of the workspace.

        Unfold's templates link this page for every member of staff, so the URL name must exist.
        """
        return HttpResponse()


dashboard_site = DashboardSite(name="dashboard")
