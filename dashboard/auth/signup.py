"""Sign up: an account with a workspace of its own, where SIGNUP allows it."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth import login
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminEmailInputWidget, UnfoldAdminTextInputWidget

from dashboard.auth.account_emails import send_proof
from dashboard.auth.passwords import judge_password, new_password_field
from dashboard.auth.rendering import PageRenderer
from dashboard.auth.throttle import SIGN_UP, remember_browser, too_fast, wait_seconds
from dashboard.ui.current_workspace import workspaces_of
from workspaces.account_status import must_prove_address
from workspaces.models import User
from workspaces.services import open_account

IN_USE = gettext_lazy("An account with this address exists already. Sign in instead.")


class SignUpForm(forms.Form):
    email = forms.EmailField(
        label=gettext_lazy("Email address"),
        max_length=254,
        widget=UnfoldAdminEmailInputWidget({"autocomplete": "email", "autofocus": True}),
    )
    password = new_password_field()
    workspace_name = forms.CharField(
        label=gettext_lazy("Workspace"),
        max_length=100,
        widget=UnfoldAdminTextInputWidget({"autocomplete": "organization"}),
        help_text=gettext_lazy("The product or team that sends."),
    )

    def clean_email(self) -> str:
        email = str(self.cleaned_data["email"]).lower()
        if User.objects.filter(email=email).exists():
            raise forms.ValidationError(IN_USE)
        return email

    def clean(self) -> dict[str, Any] | None:
        judge_password(self, email=self.cleaned_data.get("email", ""))
        return self.cleaned_data

    def open_account(self) -> User | None:
        """Return the new account; None, with the form's error, when another request was first.

        Where an address has to be proven, the link is on its way with the same commit.
        """
        is_proven = not must_prove_address()
        try:
            with transaction.atomic():
                workspace = open_account(**self.cleaned_data, plan=settings.DEFAULT_PLAN, is_proven=is_proven)
                user = workspace.users.get()
                if not is_proven:
                    send_proof(user)
        except IntegrityError:
            self.add_error("email", IN_USE)
            return None
        return user


def sign_up(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    if workspaces_of(request):
        return redirect("dashboard:index")
    if settings.SIGNUP == "closed":
        response = page(request, "dashboard/sign_up_closed.html", title=_("Sign-up is closed"))
        response.status_code = 403
        return response
    wait = wait_seconds(request, SIGN_UP) if request.method == "POST" else 0
    if wait:
        response = page(
            request, "dashboard/sign_up.html", title=_("Create your account"), form=SignUpForm(), refusal=too_fast(wait)
        )
        response.status_code = 429
        return response
    form = SignUpForm(request.POST or None)
    user = form.open_account() if form.is_valid() else None
    if user is None:
        return page(request, "dashboard/sign_up.html", title=_("Create your account"), form=form)
    login(request, user)
    response = redirect("dashboard:index")
    remember_browser(response, user)
    return response
