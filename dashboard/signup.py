"""Sign up: an account with a workspace of its own, where SIGNUP allows it."""

from typing import Any, Protocol

from django import forms
from django.conf import settings
from django.contrib.auth import login, password_validation
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from unfold.widgets import UnfoldAdminEmailInputWidget, UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from dashboard.choice import workspaces_of
from workspaces.models import User
from workspaces.services import open_account

IN_USE = "An account with this address exists already. Sign in instead."


class PageRenderer(Protocol):
    def __call__(self, request: HttpRequest, template: str, **context: Any) -> HttpResponse: ...


class SignUpForm(forms.Form):
    email = forms.EmailField(
        label="Email address",
        max_length=254,
        widget=UnfoldAdminEmailInputWidget({"autocomplete": "email", "autofocus": True}),
    )
    # As long as Argon2 may be made to work on at the cost of one request.
    password = forms.CharField(
        max_length=1024,
        strip=False,
        widget=UnfoldAdminPasswordWidget({"autocomplete": "new-password"}),
        help_text="At least 10 characters.",
    )
    workspace_name = forms.CharField(
        label="Workspace",
        max_length=100,
        widget=UnfoldAdminTextInputWidget({"autocomplete": "organization"}),
        help_text="The product or team that sends.",
    )

    def clean_email(self) -> str:
        email = str(self.cleaned_data["email"]).lower()
        if User.objects.filter(email=email).exists():
            raise forms.ValidationError(IN_USE)
        return email

    def clean(self) -> dict[str, Any] | None:
        values = self.cleaned_data
        if "password" in values:
            self._judge(values["password"], email=values.get("email", ""))
        return values

    def _judge(self, password: str, *, email: str) -> None:
        try:
            password_validation.validate_password(password, User(email=email))
        except forms.ValidationError as error:
            self.add_error("password", error)

    def open_account(self) -> User | None:
        """Return the new account; None, with the form's error, when another request was first."""
        try:
            workspace = open_account(**self.cleaned_data, plan=settings.DEFAULT_PLAN)
        except IntegrityError:
            self.add_error("email", IN_USE)
            return None
        return workspace.users.get()


def sign_up(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    if workspaces_of(request):
        return redirect("dashboard:index")
    if settings.SIGNUP == "closed":
        response = page(request, "dashboard/sign_up_closed.html", title="Sign-up is closed")
        response.status_code = 403
        return response
    form = SignUpForm(request.POST or None)
    user = form.open_account() if form.is_valid() else None
    if user is None:
        return page(request, "dashboard/sign_up.html", title="Create your account", form=form)
    login(request, user)
    return redirect("dashboard:index")
