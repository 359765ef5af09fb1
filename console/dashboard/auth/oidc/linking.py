"""The page that links an account at the provider to an account here: its password proves that both belong together."""

import time
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from unfold.widgets import UnfoldAdminPasswordWidget

from console.dashboard.auth.oidc.accounts import ALREADY_LINKED, SignInDenied, link_to_account
from console.dashboard.auth.oidc.claims import Person
from console.dashboard.auth.oidc.outcomes import failure_page
from console.dashboard.auth.passwords import MAX_PASSWORD_LENGTH, PASSWORD, has_password
from console.dashboard.auth.rendering import PageRenderer
from console.dashboard.auth.signin import is_recent_sign_in
from console.dashboard.auth.throttle import SIGN_IN, throttle_account, throttle_network, throttled_message
from core.workspaces.identities import IdentityTaken
from core.workspaces.models import User

LINK_KEY = "pending_link"
LINK_SECONDS = 600


class LinkForm(forms.Form):
    """The password of the account. An account without one must have signed in a short time ago."""

    password = forms.CharField(
        label=PASSWORD,
        max_length=MAX_PASSWORD_LENGTH,
        strip=False,
        widget=UnfoldAdminPasswordWidget({"autocomplete": "current-password", "autofocus": True}),
    )

    def __init__(self, request: HttpRequest, *, user: User) -> None:
        # Without fields, a form with no data is unbound.
        super().__init__(request.POST if request.method == "POST" else None)
        self.request, self.user = request, user
        if not has_password(user):
            del self.fields["password"]

    def clean(self) -> dict[str, Any]:
        if wait_seconds := self._throttle():
            raise forms.ValidationError(throttled_message(wait_seconds))
        if "password" not in self.fields:
            if self.request.user != self.user or not is_recent_sign_in(self.request):
                raise forms.ValidationError(_("Sign out, sign in again, and link the accounts then."))
        elif not self.user.check_password(self.cleaned_data.get("password", "")):
            self.add_error("password", _("Incorrect password."))
        return self.cleaned_data

    def _throttle(self) -> int:
        return throttle_network(self.request, SIGN_IN) or throttle_account(
            self.request, SIGN_IN, account=self.user.email
        )


def begin_link(request: HttpRequest, user: User, person: Person) -> HttpResponse:
    """Remember what is to be linked, and redirect to the page that asks for the password."""
    request.session[LINK_KEY] = {
        "user": user.pk,
        "issuer": person.issuer,
        "subject": person.subject,
        "email": str(person),
        "at": time.time(),
    }
    return redirect(reverse("admin:oidc_link", current_app=request.current_app))


def link_page(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    """Show what is to be linked, and link it."""
    pending = request.session.get(LINK_KEY, {"user": 0, "at": 0})
    user = User.objects.filter(pk=pending["user"], is_active=True).first()
    if user is None or time.time() - pending["at"] > LINK_SECONDS:
        return redirect(reverse("admin:login", current_app=request.current_app))
    form = LinkForm(request, user=user)
    if form.is_valid():
        return _link(request, page, user, pending)
    context = {"account": user, "person": pending["email"], "label": settings.OIDC_LABEL}
    return page(request, "dashboard/oidc_link.html", title=_("Link your accounts"), form=form, **context)


def _link(request: HttpRequest, page: PageRenderer, user: User, pending: dict[str, Any]) -> HttpResponse:
    del request.session[LINK_KEY]
    try:
        link_to_account(user, issuer=pending["issuer"], subject=pending["subject"])
    except IdentityTaken:
        return failure_page(request, page, SignInDenied(ALREADY_LINKED, who=user.email))
    if request.user == user:
        messages.success(request, _("Your accounts are linked."))
        return redirect(reverse("admin:security", current_app=request.current_app))
    # The person is still signed in there.
    url = reverse("admin:oidc", current_app=request.current_app)
    return page(request, "dashboard/continue.html", title=_("Your accounts are linked."), url=url)
