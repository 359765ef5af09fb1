"""Sign in to either site: address and password, then a code where the account has a second factor."""

import time
from typing import Any
from urllib.parse import urlencode

from django import forms
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

from dashboard.auth.rendering import PageRenderer
from dashboard.auth.throttle import CODE, SIGN_IN, account_wait_seconds, remember_browser, too_fast, wait_seconds
from workspaces.models import Invitation, User
from workspaces.second_factor import check_any_code

SESSION_KEY = "second_step"
SECONDS = 600
BACKEND = "django.contrib.auth.backends.ModelBackend"


class SignInForm(UnfoldAuthenticationForm):
    """Admits members of a workspace and who is invited to one; staff without one is as unknown as any stranger."""

    error_messages = {
        "invalid_login": gettext_lazy("No account has this address and password. Check both and try again."),
        "inactive": gettext_lazy("No account has this address and password. Check both and try again."),
    }

    def __init__(self, request: HttpRequest | None = None, *args: Any, **options: Any) -> None:
        super().__init__(request, *args, **options)
        self.fields["username"].label = _("Email address")
        self.fields["username"].widget.input_type = "email"

    def confirm_login_allowed(self, user: User) -> None:
        # Not the parent's, which asks for staff.
        AuthenticationForm.confirm_login_allowed(self, user)
        invitations = Invitation.objects.filter(email=user.email, expires_at__gt=Now())
        if not user.memberships.exists() and not invitations.exists():
            raise forms.ValidationError(self.error_messages["invalid_login"], code="invalid_login")


class SignIn(LoginView):
    """The first step. `next` is a path of ours or nothing."""

    def post(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        account = request.POST.get("username", "")
        wait = wait_seconds(request, SIGN_IN) or account_wait_seconds(request, SIGN_IN, account=account)
        if wait:
            empty = self.get_form_class()(request)
            return self.render_to_response(
                self.get_context_data(form=empty, refusal=too_fast(wait)),
                status=429,
                headers={"Retry-After": str(wait)},
            )
        response: HttpResponse = super().post(request, *args, **options)
        return response

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        user = form.get_user()
        assert isinstance(user, User)
        if user.second_factor_at:
            return self._ask_for_code(user)
        response: HttpResponse = super().form_valid(form)
        remember_browser(response, user)
        return response

    def _ask_for_code(self, user: User) -> HttpResponse:
        session = self.request.session
        # A session that somebody planted is not the one that will be signed in.
        session.cycle_key()
        session[SESSION_KEY] = {"user": user.pk, "at": time.time(), "mark": user.get_session_auth_hash()}
        page = reverse("admin:code", current_app=self.request.current_app)
        return redirect(f"{page}?{urlencode({'next': self.get_success_url()})}")

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        return local_path(super().get_redirect_url())


class CodeForm(forms.Form):
    code = forms.CharField(
        label=gettext_lazy("Code"),
        max_length=40,
        widget=UnfoldAdminTextInputWidget(
            {"autofocus": True, "autocomplete": "one-time-code", "inputmode": "text", "autocapitalize": "none"}
        ),
        help_text=gettext_lazy("The six digits that your authenticator app shows now, or a recovery code."),
    )


def enter_code(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    """Take the second step: sign in who came here by the right password, once the code is right."""
    user = _half_signed_in(request)
    if user is None:
        return redirect(reverse("admin:login", current_app=request.current_app))
    form, wait = CodeForm(request.POST or None), 0
    if form.is_valid():
        wait = account_wait_seconds(request, CODE, account=user.email)
        if not wait and check_any_code(user, code=form.cleaned_data["code"]):
            return _signed_in(request, user)
        form.add_error("code", too_fast(wait) if wait else _("This code is not right, or was used before."))
    response = page(request, "dashboard/code.html", title=_("One more step"), form=form)
    response.status_code = 429 if wait else 200
    return response


def local_path(target: str) -> str:
    """Return a path of ours, or nothing for anything else that a browser could follow."""
    is_local = target.startswith("/") and not target.startswith(("//", "/\\"))
    return target if is_local else ""


def _half_signed_in(request: HttpRequest) -> User | None:
    """Return who gave the right password a moment ago; a password or factor that changed since ends that."""
    step = request.session.get(SESSION_KEY)
    if not step or time.time() - step["at"] > SECONDS:
        return None
    user = User.objects.filter(pk=step["user"], is_active=True).first()
    return user if user and user.get_session_auth_hash() == step["mark"] else None


def _signed_in(request: HttpRequest, user: User) -> HttpResponse:
    del request.session[SESSION_KEY]
    login(request, user, backend=BACKEND)
    home = reverse("admin:index", current_app=request.current_app)
    response = redirect(local_path(request.GET.get("next", "")) or home)
    remember_browser(response, user)
    return response
