"""Invitation pages: join with an existing account or create one, even where sign-up is closed."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from console.dashboard.auth.current_workspace import SESSION_KEY
from console.dashboard.auth.passwords import add_password_errors, new_password_field
from console.dashboard.auth.rendering import PageRenderer, expired_link_page
from console.dashboard.auth.signin import BACKEND
from console.dashboard.auth.throttle import INVITATION, remember_browser, throttle_network, throttled_message
from core.workspaces.members import InvalidInvitation, accept_invitation, find_invitation, sign_up_invited
from core.workspaces.models import Invitation, User


class JoinForm(forms.Form):
    password = new_password_field()

    def __init__(self, data: Any, *, email: str) -> None:
        super().__init__(data)
        self.email = email

    def clean(self) -> dict[str, Any] | None:
        add_password_errors(self, email=self.email)
        return self.cleaned_data


def invitation(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    """Show the invitation behind the link; only an account with the invited address can accept it."""
    try:
        found = find_invitation(request.GET.get("token", ""))
        return _respond(request, page, found)
    except InvalidInvitation:
        advice = _("It has expired, was already used, or was withdrawn. Ask a member of the workspace for a new one.")
        return expired_link_page(request, page, title=_("This invitation is no longer valid"), advice=advice)


def _respond(request: HttpRequest, page: PageRenderer, found: Invitation) -> HttpResponse:
    user = request.user
    if user.is_authenticated and user.email == found.email:
        return _join(request, page, found, user)
    if user.is_authenticated or settings.PASSWORDS != "on" or User.objects.filter(email=found.email).exists():
        # Signed in to another account or not signed in: the invited account must sign in first.
        return page(request, "dashboard/invitation.html", title=_title(found), invitation=found, must_sign_in=True)
    return _sign_up(request, page, found)


def _join(request: HttpRequest, page: PageRenderer, found: Invitation, user: User) -> HttpResponse:
    if request.method != "POST":
        return page(request, "dashboard/invitation.html", title=_title(found), invitation=found)
    accept_invitation(found, user=user)
    return _welcome(request, found)


def _sign_up(request: HttpRequest, page: PageRenderer, found: Invitation) -> HttpResponse:
    form, wait_seconds = JoinForm(request.POST or None, email=found.email), 0
    if form.is_valid():
        wait_seconds = throttle_network(request, INVITATION)
        if not wait_seconds:
            user = sign_up_invited(found, password=form.cleaned_data["password"], language=get_language() or "")
            login(request, user, backend=BACKEND)
            response = _welcome(request, found)
            remember_browser(response, user)
            return response
        form.add_error(None, throttled_message(wait_seconds))
    response = page(request, "dashboard/invitation.html", title=_title(found), invitation=found, form=form)
    response.status_code = 429 if wait_seconds else 200
    return response


def _welcome(request: HttpRequest, found: Invitation) -> HttpResponse:
    request.session[SESSION_KEY] = found.workspace_id
    messages.success(request, _("You joined %(workspace)s.") % {"workspace": found.workspace.name})
    return redirect("dashboard:index")


def _title(found: Invitation) -> str:
    return _("Join %(workspace)s") % {"workspace": found.workspace.name}
