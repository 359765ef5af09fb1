"""Sign-in for both sites: address and password or the identity provider, then a code if the account has a factor."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.forms import AuthenticationForm as UnfoldAuthenticationForm
from unfold.widgets import UnfoldAdminTextInputWidget

from console.dashboard.auth.rendering import PageRenderer
from console.dashboard.auth.session_policy import LINK_KEY, PROVIDER_KEY, is_allowed, origin_of
from console.dashboard.auth.throttle import (
    CODE,
    SIGN_IN,
    remember_browser,
    throttle_account,
    throttle_network,
    throttled_message,
)
from core.workspaces.audit import AuditAction, record_about_account
from core.workspaces.models import Invitation, User
from core.workspaces.second_factor import check_any_code

SESSION_KEY = "second_step"
SECOND_STEP_SECONDS = 600
SIGNED_IN_KEY = "signed_in_at"
# Accounts without a password change their second factor soon after signing in.
RECENT_SECONDS = 900
BACKEND = "django.contrib.auth.backends.ModelBackend"


class StaffSignInForm(UnfoldAuthenticationForm):
    def __init__(self, request: HttpRequest | None = None, *args: Any, **options: Any) -> None:
        super().__init__(request, *args, **options)
        self.fields["username"].label = _("Email address")
        self.fields["username"].widget.input_type = "email"
        self.fields["username"].widget.attrs["autofocus"] = True


class SignInForm(StaffSignInForm):
    """Accepts members of a workspace and people invited to one. Staff without a workspace are treated as unknown."""

    error_messages = {
        "invalid_login": gettext_lazy("Incorrect email address or password."),
        "inactive": gettext_lazy("Incorrect email address or password."),
    }

    def confirm_login_allowed(self, user: User) -> None:
        # Skips the parent's check, which requires staff.
        AuthenticationForm.confirm_login_allowed(self, user)
        if not user.memberships.exists() and not is_invited(user.email):
            raise forms.ValidationError(self.error_messages["invalid_login"], code="invalid_login")


class SignInView(LoginView):
    """The first sign-in step. `next` is a local path or empty."""

    def post(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        account = request.POST.get("username", "")
        wait_seconds = throttle_network(request, SIGN_IN) or throttle_account(request, SIGN_IN, account=account)
        if wait_seconds:
            unchecked = self.get_form_class()(request, initial={"username": account})
            return self.render_to_response(
                self.get_context_data(form=unchecked, refusal=throttled_message(wait_seconds)),
                status=429,
                headers={"Retry-After": str(wait_seconds)},
            )
        response: HttpResponse = super().post(request, *args, **options)
        return response

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        user = form.get_user()
        assert isinstance(user, User)
        return continue_sign_in(self.request, user, next_url=self.get_success_url())

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        return local_path(super().get_redirect_url())


class CodeForm(forms.Form):
    code = forms.CharField(
        label=gettext_lazy("Code"),
        max_length=40,
        widget=UnfoldAdminTextInputWidget(
            {"autofocus": True, "autocomplete": "one-time-code", "inputmode": "text", "autocapitalize": "none"}
        ),
        help_text=gettext_lazy("The 6-digit code from your authenticator app, or a recovery code."),
    )


def enter_code(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    """Complete the second step: sign in the account from the first step if the code is correct."""
    user = _pending_user(request)
    if user is None:
        return redirect(reverse("admin:login", current_app=request.current_app))
    form, wait_seconds = CodeForm(request.POST or None), 0
    if form.is_valid():
        wait_seconds = throttle_account(request, CODE, account=user.email)
        if not wait_seconds and check_any_code(user, code=form.cleaned_data["code"]):
            origin = origin_of(request.session.pop(SESSION_KEY))
            home = reverse("admin:index", current_app=request.current_app)
            next_url = local_path(request.GET.get("next", "")) or home
            return _complete_sign_in(request, user, next_url=next_url, origin=origin)
        form.add_error(
            "code",
            throttled_message(wait_seconds) if wait_seconds else _("This code is invalid or has already been used."),
        )
    response = page(request, "dashboard/code.html", title=_("Two-factor authentication"), form=form)
    response.status_code = 429 if wait_seconds else 200
    return response


def local_path(target: str) -> str:
    """Return the target if it is a local path, otherwise an empty string."""
    is_local = target.startswith("/") and not target.startswith(("//", "/\\"))
    return target if is_local else ""


def _pending_user(request: HttpRequest) -> User | None:
    """Return the account that passed the first step, unless its password or second factor changed since.

    Also not after a password, if passwords were switched off meanwhile.
    """
    step = request.session.get(SESSION_KEY)
    if not step or time.time() - step["at"] > SECOND_STEP_SECONDS:
        return None
    user = User.objects.filter(pk=step["user"], is_active=True).first()
    is_valid = user and user.get_session_auth_hash() == step["mark"] and is_allowed(user, origin_of(step))
    return user if is_valid else None


def continue_sign_in(
    request: HttpRequest, user: User, *, next_url: str, origin: Mapping[str, Any] = MappingProxyType({})
) -> HttpResponse:
    """Sign in after the first step, or ask for the second factor of the account.

    origin: the member of the session by which it began, PROVIDER_KEY or LINK_KEY; empty after a password.
    """
    has_used_factor = PROVIDER_KEY in origin and origin[PROVIDER_KEY]["mfa"]
    if not user.second_factor_at or has_used_factor:
        return _complete_sign_in(request, user, next_url=next_url, origin=origin)
    session = request.session
    # Prevents session fixation: a planted session key is not the one that gets signed in.
    session.cycle_key()
    mark = user.get_session_auth_hash()
    session[SESSION_KEY] = {"user": user.pk, "at": time.time(), "mark": mark, **origin}
    page = reverse("admin:code", current_app=request.current_app)
    return redirect(f"{page}?{urlencode({'next': next_url})}")


def has_provider_factor(request: HttpRequest) -> bool:
    """Return whether the identity provider reported a second factor for the session."""
    return bool((request.session.get(PROVIDER_KEY) or {}).get("mfa"))


def is_recent_sign_in(request: HttpRequest) -> bool:
    return bool(time.time() - request.session.get(SIGNED_IN_KEY, 0) < RECENT_SECONDS)


def is_invited(email: str) -> bool:
    return Invitation.objects.filter(email=email, expires_at__gt=Now()).exists()


def _complete_sign_in(request: HttpRequest, user: User, *, next_url: str, origin: Mapping[str, Any]) -> HttpResponse:
    login(request, user, backend=BACKEND)
    request.session[SIGNED_IN_KEY] = time.time()
    for name in (PROVIDER_KEY, LINK_KEY):
        request.session.pop(name, None)
    request.session.update(origin)
    provider = origin.get(PROVIDER_KEY)
    request.session.set_expiry(datetime.fromtimestamp(provider["until"], UTC) if provider else None)
    record_about_account(user, AuditAction.SIGNED_IN, about=settings.OIDC_LABEL if provider else "")
    response = redirect(next_url)
    remember_browser(response, user)
    return response
