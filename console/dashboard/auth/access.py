"""Sign-in, sign-out, two-factor and account security pages, shared by both admin sites."""

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any, ClassVar, cast

from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.views import LogoutView
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from unfold.sites import UnfoldAdminSite

from console.dashboard.auth.oidc.sign_out import provider_sign_out_url
from console.dashboard.auth.oidc.views import callback, link, start
from console.dashboard.auth.passwords import allows_passwords, has_password
from console.dashboard.auth.preferences import needs_time_zone, preferences
from console.dashboard.auth.security import end_sessions, security
from console.dashboard.auth.sign_in_link import sign_in_link
from console.dashboard.auth.signin import SignInView, enter_code, local_path


class TwoFactorSite(UnfoldAdminSite):
    """An admin site whose sign-in supports a second factor."""

    login_template = "dashboard/sign_in.html"
    not_found_template = "dashboard/not_found.html"
    welcome: ClassVar[str | Promise] = gettext_lazy("Welcome back.")

    def account_urls(self) -> list[URLPattern]:
        return [
            path("login/code/", never_cache(self.as_page(enter_code)), name="code"),
            path("security/", never_cache(self.as_page(security)), name="security"),
            path("security/sessions/", never_cache(self.as_page(end_sessions)), name="end_sessions"),
            path("preferences/", never_cache(self.as_page(preferences)), name="preferences"),
            path("oidc/", never_cache(self.as_page(start)), name="oidc"),
            path("oidc/callback", never_cache(self.as_page(callback)), name="oidc_callback"),
            path("oidc/link/", never_cache(self.as_page(link)), name="oidc_link"),
            path("sign-in-link/", never_cache(self.as_page(sign_in_link)), name="sign_in_link"),
        ]

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Callable[..., Any]:  # noqa: FBT001, FBT002 - of Django
        """Guard a view, and answer with a page in the frame of the site where it raises Http404."""

        @wraps(view)
        def framed(request: HttpRequest, *args: Any, **named: Any) -> Any:
            try:
                return view(request, *args, **named)
            except Http404:
                # Programs get the problem of core.api.exception_handler.
                if request.content_type == "application/json":
                    raise
                return self.not_found(request)

        guarded: Callable[..., Any] = super().admin_view(framed, cacheable)
        return guarded

    def not_found(self, request: HttpRequest) -> TemplateResponse:
        response = self.page(
            request, self.not_found_template, title=_("Page not found"), **self.not_found_texts(request)
        )
        response.status_code = HTTPStatus.NOT_FOUND
        return response

    def not_found_texts(self, request: HttpRequest) -> dict[str, str]:
        """Return the reason for a page that does not exist, and an advice."""
        return {"reason": _("This page does not exist"), "advice": _("The object may have been deleted.")}

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            **super().each_context(request),
            "needs_time_zone": needs_time_zone(request),
            "recipient_setting": settings.RECIPIENTS,
        }

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        request.current_app = self.name
        home = reverse("admin:index", current_app=self.name)
        if request.method == "GET" and self.has_permission(request):
            return redirect(home)
        target = local_path(request.POST.get("next", request.GET.get("next", ""))) or home
        has_form = allows_passwords(self.name)
        if request.method == "POST" and not has_form:
            raise Http404
        context = {
            **self.each_context(request),
            "title": _("Sign in"),
            "app_path": request.get_full_path(),
            "welcome": self.welcome,
            "has_password_form": has_form,
            "provider_label": settings.OIDC_LABEL if settings.OIDC_ISSUER else "",
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

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """End the session, and then the one of the identity provider if it has a page for that."""
        request.current_app = self.name
        login_page = reverse("admin:login", current_app=self.name)
        url = provider_sign_out_url(request, login_page) if request.method == "POST" else ""
        response: HttpResponse = LogoutView.as_view(next_page=login_page)(request)
        if not url:
            return response
        text = _("You are signed out here. The identity provider opens to end your session there, too.")
        return self.page(request, "dashboard/continue.html", title=_("Signed out"), text=text, url=url)

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        user: Any = request.user
        if not has_password(user):
            raise Http404
        response: HttpResponse = super().password_change(request, extra_context)
        return response

    def page(self, request: HttpRequest, template: str, **context: Any) -> TemplateResponse:
        request.current_app = self.name  # read by the admin's templates
        return TemplateResponse(request, template, {**self.each_context(request), **context})

    def as_page(self, view: Callable[..., HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
        """Adapt a view that checks access itself: call it with this site's page renderer."""

        def wrapped(request: HttpRequest) -> HttpResponse:
            request.current_app = self.name
            return view(request, self.page)

        return wrapped
