"""Sign-up: create an account and its first workspace, where SIGNUP allows it."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth import login
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _
from unfold.widgets import UnfoldAdminEmailInputWidget, UnfoldAdminTextInputWidget

from console.dashboard.auth.account_emails import send_confirmation
from console.dashboard.auth.current_workspace import workspaces_of
from console.dashboard.auth.passwords import add_password_errors, new_password_field
from console.dashboard.auth.rendering import PageRenderer
from console.dashboard.auth.signin import BACKEND
from console.dashboard.auth.throttle import SIGN_UP, remember_browser, throttle_network, throttled_message
from core.workspaces.account_status import must_confirm_address
from core.workspaces.models import User, normalize_identity
from core.workspaces.services import create_account

IN_USE = gettext_lazy("An account with this address already exists. Sign in instead.")


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
        help_text=gettext_lazy("The product or team that sends email."),
    )

    def clean_email(self) -> str:
        email = normalize_identity(self.cleaned_data["email"])
        if User.objects.filter(email=email).exists():
            raise forms.ValidationError(IN_USE)
        return email

    def clean(self) -> dict[str, Any] | None:
        add_password_errors(self, email=self.cleaned_data.get("email", ""))
        return self.cleaned_data

    def create_account(self) -> User | None:
        """Return the new account; None, with the form's error, when another request was first.

        If the address must be confirmed, the confirmation email is queued in the same transaction.
        """
        is_proven = not must_confirm_address()
        try:
            with transaction.atomic():
                workspace = create_account(
                    **self.cleaned_data, plan=settings.DEFAULT_PLAN, is_proven=is_proven, language=get_language() or ""
                )
                user = workspace.users.get()
                if not is_proven:
                    send_confirmation(user)
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
    wait_seconds = throttle_network(request, SIGN_UP) if request.method == "POST" else 0
    if wait_seconds:
        response = page(
            request,
            "dashboard/sign_up.html",
            title=_("Create your account"),
            form=SignUpForm(),
            refusal=throttled_message(wait_seconds),
        )
        response.status_code = 429
        return response
    form = SignUpForm(request.POST or None)
    user = form.create_account() if form.is_valid() else None
    if user is None:
        return page(request, "dashboard/sign_up.html", title=_("Create your account"), form=form)
    login(request, user, backend=BACKEND)
    response = redirect("dashboard:index")
    remember_browser(response, user)
    return response
