"""Sign in to the dashboard with an email address and a password."""

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest
from unfold.forms import AuthenticationForm as UnfoldAuthenticationForm

from workspaces.models import User


class SignInForm(UnfoldAuthenticationForm):
    """Admits members of a workspace; a staff account without one is as unknown here as any stranger."""

    error_messages = {
        "invalid_login": "No account has this address and password. Check both and try again.",
        "inactive": "No account has this address and password. Check both and try again.",
    }

    def __init__(self, request: HttpRequest | None = None, *args: Any, **options: Any) -> None:
        super().__init__(request, *args, **options)
        self.fields["username"].label = "Email address"
        self.fields["username"].widget.input_type = "email"

    def confirm_login_allowed(self, user: User) -> None:
        # Not the parent's, which asks for staff.
        AuthenticationForm.confirm_login_allowed(self, user)
        if not user.memberships.exists():
            raise forms.ValidationError(self.error_messages["invalid_login"], code="invalid_login")
