"""One's own security: the password, and a second factor, on either site."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from dashboard.auth.account_emails import send_notice
from dashboard.auth.qr import drawn
from dashboard.auth.rendering import PageRenderer
from dashboard.auth.throttle import CODE, account_wait_seconds, too_fast
from workspaces.account_status import must_have_second_factor
from workspaces.models import User
from workspaces.second_factor import (
    begin_enrolment,
    check_any_code,
    confirm_enrolment,
    end_second_factor,
    otpauth_url,
    spelled,
)

WRONG = gettext_lazy("This code is not right, or was used before.")


class EnrolForm(forms.Form):
    """The password too: a session that was left open must not become somebody else's for good."""

    code = forms.CharField(
        label=gettext_lazy("Code from the app"),
        max_length=20,
        widget=UnfoldAdminTextInputWidget({"autocomplete": "one-time-code", "inputmode": "numeric"}),
    )
    password = forms.CharField(
        label=gettext_lazy("Your password"),
        max_length=1024,
        strip=False,
        widget=UnfoldAdminPasswordWidget({"autocomplete": "current-password"}),
    )


class EndForm(EnrolForm):
    code = forms.CharField(
        label=gettext_lazy("Code"),
        max_length=40,
        widget=UnfoldAdminTextInputWidget({"autocomplete": "one-time-code", "autocapitalize": "none"}),
        help_text=gettext_lazy("From the app, or a recovery code."),
    )


def security(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    user = request.user
    if not isinstance(user, User) or not user.is_active:
        return redirect(f"{reverse('admin:login', current_app=request.current_app)}?next={request.path}")
    return _end(request, page, user) if user.second_factor_at else _enrol(request, page, user)


def _enrol(request: HttpRequest, page: PageRenderer, user: User) -> HttpResponse:
    form = EnrolForm(request.POST or None)
    if form.is_valid() and _may_try(request, form, user):
        codes = confirm_enrolment(user, code=form.cleaned_data["code"])
        if codes:
            update_session_auth_hash(request, user)
            # Shown in this very answer and kept nowhere as they are.
            return page(request, "dashboard/recovery_codes.html", title=_("Recovery codes"), codes="\n".join(codes))
        form.add_error("code", WRONG)
    secret = begin_enrolment(user)
    url = otpauth_url(user, secret=secret)
    return page(
        request,
        "dashboard/security.html",
        title=_("Security"),
        form=form,
        secret=spelled(secret),
        otpauth=url,
        square=drawn(url),
        is_required=must_have_second_factor(user),
    )


def _end(request: HttpRequest, page: PageRenderer, user: User) -> HttpResponse:
    form = EndForm(request.POST or None)
    if form.is_valid() and _may_try(request, form, user):
        if check_any_code(user, code=form.cleaned_data["code"]):
            _turn_off(request, user)
            return redirect(request.path)
        form.add_error("code", WRONG)
    left = user.recovery_codes.count()
    return page(request, "dashboard/security.html", title=_("Security"), form=form, codes_left=left)


@transaction.atomic
def _turn_off(request: HttpRequest, user: User) -> None:
    end_second_factor(user)
    send_notice(user, what=_("The second factor of your Postrider account was turned off."))
    update_session_auth_hash(request, user)
    messages.success(request, _("Your password alone signs you in now."))


def _may_try(request: HttpRequest, form: Any, user: User) -> bool:
    wait = account_wait_seconds(request, CODE, account=user.email)
    if wait:
        form.add_error(None, too_fast(wait))
    elif not user.check_password(form.cleaned_data["password"]):
        form.add_error("password", _("This is not your password."))
    return not form.errors
