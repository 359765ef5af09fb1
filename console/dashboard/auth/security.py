"""Account security page on either site: password and second factor (docs/decisions/0061)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import segno
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import HASH_SESSION_KEY, update_session_auth_hash
from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from console.dashboard.auth.account_emails import send_security_notice
from console.dashboard.auth.passwords import has_password
from console.dashboard.auth.rendering import PageRenderer
from console.dashboard.auth.sessions import end_other_sessions, end_session, stored_key
from console.dashboard.auth.signin import SIGNED_IN_KEY, is_recent_sign_in
from console.dashboard.auth.throttle import CODE, throttle_account, throttled_message
from console.dashboard.texts.browsers import browser_name
from core.workspaces.account_status import must_have_second_factor
from core.workspaces.models import AccountSession, User
from core.workspaces.second_factor import (
    begin_enrolment,
    check_any_code,
    confirm_enrolment,
    end_second_factor,
    format_secret,
    otpauth_url,
)

TURNED_OFF = gettext_lazy("Two-factor authentication was turned off for your account.")
WRONG_CODE = gettext_lazy("This code is invalid or has already been used.")
MAX_SESSIONS = 50


@dataclass(frozen=True)
class ListedSession:
    """A session of the account.

    key: as stored.
    since: the time of the sign-in.
    """

    key: str
    browser: str
    address: str | None
    since: datetime
    is_current: bool


class EnrolForm(forms.Form):
    """Requires the password too: an unattended session must not allow a permanent takeover.

    An account without a password must have signed in a short time ago instead.
    """

    def __init__(self, data: Any, *, user: User) -> None:
        super().__init__(data)
        if not has_password(user):
            del self.fields["password"]

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


class DisableForm(EnrolForm):
    code = forms.CharField(
        label=gettext_lazy("Code"),
        max_length=40,
        widget=UnfoldAdminTextInputWidget({"autocomplete": "one-time-code", "autocapitalize": "none"}),
        help_text=gettext_lazy("From your authenticator app, or a recovery code."),
    )


def security(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    user = request.user
    if not isinstance(user, User) or not user.is_active:
        return redirect(f"{reverse('admin:login', current_app=request.current_app)}?next={request.path}")
    return _disable(request, page, user) if user.second_factor_at else _enrol(request, page, user)


def _enrol(request: HttpRequest, page: PageRenderer, user: User) -> HttpResponse:
    form = EnrolForm(request.POST or None, user=user)
    if form.is_valid() and _passes_checks(request, form, user):
        codes = confirm_enrolment(user, code=form.cleaned_data["code"])
        if codes:
            update_session_auth_hash(request, user)
            # Shown in this response only; stored as hashes.
            return page(request, "dashboard/recovery_codes.html", title=_("Recovery codes"), codes="\n".join(codes))
        form.add_error("code", WRONG_CODE)
    secret = begin_enrolment(user)
    url = otpauth_url(user, secret=secret)
    return page(
        request,
        "dashboard/security.html",
        **_sign_in_context(request, user),
        form=form,
        secret=format_secret(secret),
        otpauth=url,
        qr_code=qr_svg(url),
        is_required=must_have_second_factor(user),
    )


def _disable(request: HttpRequest, page: PageRenderer, user: User) -> HttpResponse:
    form = DisableForm(request.POST or None, user=user)
    if form.is_valid() and _passes_checks(request, form, user):
        if check_any_code(user, code=form.cleaned_data["code"]):
            _turn_off(request, user)
            return redirect(request.path)
        form.add_error("code", WRONG_CODE)
    left = user.recovery_codes.count()
    return page(request, "dashboard/security.html", **_sign_in_context(request, user), form=form, codes_left=left)


@require_POST
def end_sessions(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    """End one session of the account, or with `others` all but this one."""
    user = request.user
    if isinstance(user, User) and "others" in request.POST:
        end_other_sessions(request, user)
        messages.success(request, _("All other sessions were ended."))
    elif isinstance(user, User) and end_session(user, key=request.POST.get("session", "")):
        messages.success(request, _("The session was ended."))
    return redirect(reverse("admin:security", current_app=request.current_app))


def list_sessions(request: HttpRequest, user: User) -> list[ListedSession]:
    """Return the valid sessions of an account, newest first."""
    current = stored_key(request.session.session_key)
    if not user.sessions.filter(session=current).exists():
        # It began with the version before.
        request.session.save()
    rows = user.sessions.filter(session__expire_date__gt=Now()).select_related("session").order_by("-created_at")
    read = [(row, row.session.get_decoded()) for row in rows[:MAX_SESSIONS]]
    # A session is over once the password or the second factor has changed.
    hash_ = user.get_session_auth_hash()
    sessions = [_listed(row, data, current=current) for row, data in read if data.get(HASH_SESSION_KEY) == hash_]
    return sorted(sessions, key=lambda session: (session.is_current, session.since), reverse=True)


def _listed(row: AccountSession, data: Mapping[str, Any], *, current: str) -> ListedSession:
    """Return a session for the list. data: of the session."""
    signed_in_at = data.get(SIGNED_IN_KEY)
    since = datetime.fromtimestamp(signed_in_at, UTC) if signed_in_at else row.created_at
    is_current = row.session_id == current
    return ListedSession(row.session_id, browser_name(row.agent), row.address, since, is_current=is_current)


def _sign_in_context(request: HttpRequest, user: User) -> dict[str, Any]:
    return {
        "sessions": list_sessions(request, user),
        "title": _("Security"),
        "has_password": has_password(user),
        "provider_label": settings.OIDC_LABEL if settings.OIDC_ISSUER else "",
        "identity": user.identities.first(),
    }


@transaction.atomic
def _turn_off(request: HttpRequest, user: User) -> None:
    end_second_factor(user)
    send_security_notice(user, change=TURNED_OFF)
    update_session_auth_hash(request, user)
    messages.success(request, _("Two-factor authentication is off."))


def qr_svg(text: str) -> SafeString:
    """Return a QR code as inline SVG: black on white with its quiet zone, in every colour scheme."""
    code = segno.make(text, error="m", micro=False, boost_error=False)
    # The SVG contains only the positions of the squares, none of the text.
    return mark_safe(code.svg_inline(light="#fff", omitsize=True, svgclass=None, lineclass=None))  # noqa: S308


def _passes_checks(request: HttpRequest, form: Any, user: User) -> bool:
    wait_seconds = throttle_account(request, CODE, account=user.email)
    if wait_seconds:
        form.add_error(None, throttled_message(wait_seconds))
    elif "password" not in form.fields:
        if not is_recent_sign_in(request):
            form.add_error(None, _("Sign out, sign in again, and change this within 15 minutes."))
    elif not user.check_password(form.cleaned_data["password"]):
        form.add_error("password", _("Incorrect password."))
    return not form.errors
