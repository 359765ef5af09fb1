"""A password that is chosen: as a form field and as Django's validators judge it."""

from typing import Any

from django import forms
from django.contrib.auth import password_validation
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminPasswordWidget

from workspaces.models import User

PASSWORD = gettext_lazy("Password")
# As long as Argon2 may be made to work on at the cost of one request.
MAX_LENGTH = 1024


def new_password_field(label: Any = PASSWORD) -> forms.CharField:
    return forms.CharField(
        label=label,
        max_length=MAX_LENGTH,
        strip=False,
        widget=UnfoldAdminPasswordWidget({"autocomplete": "new-password"}),
        help_text=gettext_lazy("At least 10 characters."),
    )


def judge_password(form: forms.Form, *, email: str) -> None:
    """Add the validators' complaints about the form's password to the form."""
    password = form.cleaned_data.get("password")
    if password is None:
        return
    try:
        password_validation.validate_password(password, User(email=email))
    except forms.ValidationError as error:
        form.add_error("password", error)
