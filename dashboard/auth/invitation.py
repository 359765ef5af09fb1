"""What an invitation's link opens: join with an account, or make one, even where sign-up is closed."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from dashboard.auth.passwords import judge_password, new_password_field
from dashboard.auth.rendering import PageRenderer
from dashboard.auth.signin import BACKEND
from dashboard.auth.throttle import INVITATION, remember_browser, too_fast, wait_seconds
from dashboard.ui.current_workspace import SESSION_KEY
from workspaces.members import InvitationGone, accept_invitation, find_invitation, sign_up_invited
from workspaces.models import Invitation, User


class JoinForm(forms.Form):
    password = new_password_field()

    def __init__(self, data: Any, *, email: str) -> None:
        super().__init__(data)
        self.email = email

    def clean(self) -> dict[str, Any] | None:
        judge_password(self, email=self.email)
        return self.cleaned_data


def invitation(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    """Show the invitation to whoever holds its link; only its own address can accept it."""
    try:
        found = find_invitation(request.GET.get("token", ""))
        return _answer(request, page, found)
    except InvitationGone:
        response = page(request, "dashboard/link_gone.html", title=_("This invitation does not work any more"))
        response.status_code = 410
        return response


def _answer(request: HttpRequest, page: PageRenderer, found: Invitation) -> HttpResponse:
    user = request.user
    if user.is_authenticated and user.email == found.email:
        return _join(request, page, found, user)
    if user.is_authenticated or User.objects.filter(email=found.email).exists():
        # Signed in as somebody else, or not at all: the account has to sign in first.
        return page(request, "dashboard/invitation.html", title=_title(found), invitation=found, must_sign_in=True)
    return _sign_up(request, page, found)


def _join(request: HttpRequest, page: PageRenderer, found: Invitation, user: User) -> HttpResponse:
    if request.method != "POST":
        return page(request, "dashboard/invitation.html", title=_title(found), invitation=found)
    accept_invitation(found, user=user)
    return _welcome(request, found)


def _sign_up(request: HttpRequest, page: PageRenderer, found: Invitation) -> HttpResponse:
    form, wait = JoinForm(request.POST or None, email=found.email), 0
    if form.is_valid():
        wait = wait_seconds(request, INVITATION)
        if not wait:
            user = sign_up_invited(found, password=form.cleaned_data["password"])
            login(request, user, backend=BACKEND)
            response = _welcome(request, found)
            remember_browser(response, user)
            return response
        form.add_error(None, too_fast(wait))
    response = page(request, "dashboard/invitation.html", title=_title(found), invitation=found, form=form)
    response.status_code = 429 if wait else 200
    return response


def _welcome(request: HttpRequest, found: Invitation) -> HttpResponse:
    request.session[SESSION_KEY] = found.workspace_id
    messages.success(request, _("You are in %(workspace)s now.") % {"workspace": found.workspace.name})
    return redirect("dashboard:index")


def _title(found: Invitation) -> str:
    return _("Join %(workspace)s") % {"workspace": found.workspace.name}
