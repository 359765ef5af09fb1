"""Password reset by email. No response reveals whether an address has an account."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.tokens import default_token_generator
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.encoding import force_str
from django.utils.http import urlsafe_base64_decode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminEmailInputWidget

from console.dashboard.auth.account_emails import send_password_reset, send_security_notice
from console.dashboard.auth.passwords import add_password_errors, new_password_field
from console.dashboard.auth.rendering import PageRenderer, expired_link_page
from console.dashboard.auth.throttle import (
    RESET,
    remember_browser,
    throttle_account,
    throttle_network,
    throttled_message,
)
from core.workspaces.account_status import is_unconfirmed
from core.workspaces.models import ApiKey, User, normalize_identity
from core.workspaces.services import revoke_api_key
from webhooks.models import Webhook
from webhooks.services import delete_webhook

SESSION_KEY = "new_password"
PASSWORD_CHANGED = gettext_lazy("The password of your account was changed using a reset link sent to this address.")


class ResetForm(forms.Form):
    email = forms.EmailField(
        label=gettext_lazy("Email address"),
        max_length=254,
        widget=UnfoldAdminEmailInputWidget({"autocomplete": "email", "autofocus": True}),
    )

    def clean_email(self) -> str:
        return normalize_identity(self.cleaned_data["email"])


class NewPasswordForm(forms.Form):
    password = new_password_field(gettext_lazy("New password"))

    def __init__(self, data: Any, *, user: User) -> None:
        super().__init__(data)
        self.user = user

    def clean(self) -> dict[str, Any] | None:
        add_password_errors(self, email=self.user.email)
        return self.cleaned_data


def reset(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    """Request a reset link. The response and the work are the same for every address."""
    form, wait_seconds = ResetForm(request.POST or None), 0
    if form.is_valid():
        wait_seconds = throttle_network(request, RESET)
        if not wait_seconds:
            email = form.cleaned_data["email"]
            # Past the account's limit the response stays the same: an error would reveal earlier requests.
            if not throttle_account(request, RESET, account=email):
                with transaction.atomic():
                    send_password_reset(email)
            return page(request, "dashboard/reset_sent.html", title=_("Check your email"), email=email)
        form.add_error(None, throttled_message(wait_seconds))
    response = page(request, "dashboard/reset.html", title=_("Forgot your password?"), form=form)
    response.status_code = 429 if wait_seconds else 200
    return response


def new_password(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    """Choose a password. The token moves to the session first, to keep it out of Referer headers and history."""
    if "token" in request.GET:
        request.session[SESSION_KEY] = [request.GET.get("account", ""), request.GET["token"]]
        return redirect("dashboard:new_password")
    user = _account(*request.session.get(SESSION_KEY, ("", "")))
    if user is None:
        advice = _("A reset link works once and expires after one hour.")
        return expired_link_page(request, page, title=_("This link is no longer valid"), advice=advice, is_reset=True)
    form = NewPasswordForm(request.POST or None, user=user)
    if not form.is_valid():
        return page(request, "dashboard/new_password.html", title=_("Choose a new password"), form=form)
    return _change_password(request, user, password=form.cleaned_data["password"])


def _account(account: str, token: str) -> User | None:
    try:
        user = User.objects.filter(pk=int(force_str(urlsafe_base64_decode(account))), is_active=True).first()
    except (ValueError, OverflowError):
        return None
    return user if user and default_token_generator.check_token(user, token) else None


@transaction.atomic
def _change_password(request: HttpRequest, user: User, *, password: str) -> HttpResponse:
    """Set the password. This ends all sessions of the account and invalidates the link.

    The API keys and webhooks of an account without a confirmed address are removed: the person who created them may
    not be the owner of the address (docs/decisions/0090).
    """
    user.set_password(password)
    user.save(update_fields=["password"])
    _remove_unconfirmed_access(user)
    send_security_notice(user, change=PASSWORD_CHANGED)
    request.session.flush()
    messages.success(request, _("Your password was changed. Sign in with the new password."))
    response = redirect("dashboard:login")
    remember_browser(response, user)
    return response


def _remove_unconfirmed_access(user: User) -> None:
    """Revoke the API keys and delete the webhooks of an account that nobody has confirmed."""
    if is_unconfirmed(user):
        for key in ApiKey.objects.filter(workspace__memberships__user=user):
            revoke_api_key(key)
        for webhook in Webhook.objects.filter(workspace__memberships__user=user):
            delete_webhook(webhook)
