"""New passwords: the form field, and validation by Django's password validators."""

from typing import Any

from django import forms
from django.contrib.auth import password_validation
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminPasswordWidget

from workspaces.models import User

PASSWORD = gettext_lazy("Password")
# Bounds the Argon2 work of one request.
MAX_PASSWORD_LENGTH = 1024


def new_password_field(label: Any = PASSWORD) -> forms.CharField:
    return forms.CharField(
        label=label,
        max_length=MAX_PASSWORD_LENGTH,
        strip=False,
        widget=UnfoldAdminPasswordWidget({"autocomplete": "new-password"}),
        help_text=gettext_lazy("At least 10 characters."),
    )


def add_password_errors(form: forms.Form, *, email: str) -> None:
    """Validate the form's password and add the errors to the form."""
    password = form.cleaned_data.get("password")
    if password is None:
        return
    try:
        password_validation.validate_password(password, User(email=email))
    except forms.ValidationError as error:
        form.add_error("password", error)
