"""Sign-in, two-factor and account security pages, shared by both admin sites."""

from collections.abc import Callable
from typing import Any, ClassVar, cast

from django.contrib.admin.forms import AdminAuthenticationForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from unfold.sites import UnfoldAdminSite

from dashboard.auth.preferences import needs_time_zone, preferences
from dashboard.auth.security import security
from dashboard.auth.signin import SignInView, enter_code, local_path


class TwoFactorSite(UnfoldAdminSite):
    """An admin site whose sign-in supports a second factor."""

    login_template = "dashboard/sign_in.html"
    welcome: ClassVar[str | Promise] = gettext_lazy("Welcome back.")

    def account_urls(self) -> list[URLPattern]:
        return [
            path("login/code/", never_cache(self.as_page(enter_code)), name="code"),
            path("security/", never_cache(self.as_page(security)), name="security"),
            path("preferences/", never_cache(self.as_page(preferences)), name="preferences"),
        ]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        return {**super().each_context(request), "needs_time_zone": needs_time_zone(request)}

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        request.current_app = self.name
        home = reverse("admin:index", current_app=self.name)
        if request.method == "GET" and self.has_permission(request):
            return redirect(home)
        target = local_path(request.POST.get("next", request.GET.get("next", ""))) or home
        context = {
            **self.each_context(request),
            "title": _("Sign in"),
            "app_path": request.get_full_path(),
            "welcome": self.welcome,
        }
        view = never_cache(
            sensitive_post_parameters("password")(
                SignInView.as_view(
                    extra_context={**context, "next": target, **(extra_context or {})},
                    authentication_form=self.login_form or AdminAuthenticationForm,
                    template_name=self.login_template,
                    next_page=home,
                )
            )
        )
        return cast("HttpResponse", view(request))

    def page(self, request: HttpRequest, template: str, **context: Any) -> TemplateResponse:
        request.current_app = self.name  # read by the admin's templates
        return TemplateResponse(request, template, {**self.each_context(request), **context})

    def as_page(self, view: Callable[..., HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
        """Adapt a view that checks access itself: call it with this site's page renderer."""

        def wrapped(request: HttpRequest) -> HttpResponse:
            request.current_app = self.name
            return view(request, self.page)

        return wrapped
