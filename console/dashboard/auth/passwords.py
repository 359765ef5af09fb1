"""Passwords: who may use one (PASSWORDS), the form field for a new one, and its validation by Django's validators."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth import password_validation
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminPasswordWidget

from core.workspaces.models import User, normalize_identity

PASSWORD = gettext_lazy("Password")
# Bounds the Argon2 work of one request.
MAX_PASSWORD_LENGTH = 1024


class PasswordPolicy:
    """An authentication backend that accepts nobody, and refuses those who may not use a password.

    Django asks it before ModelBackend, which signs in.
    """

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **_: Any
    ) -> None:
        if settings.PASSWORDS == "on":
            return
        user = User.objects.filter(email=normalize_identity(username or "")).first()
        if user is None or not may_use_password(user):
            # Takes as much work as for an account that may.
            User().set_password(password)
            raise PermissionDenied


def may_use_password(user: User) -> bool:
    return settings.PASSWORDS == "on" or (settings.PASSWORDS == "staff" and user.is_staff)


def has_password(user: User) -> bool:
    """Return whether the account can sign in with a password: accounts of the identity provider have none."""
    return may_use_password(user) and user.has_usable_password()


def allows_passwords(site: str) -> bool:
    """Return whether a site shows the form for address and password. site: admin or dashboard."""
    return settings.PASSWORDS == "on" or (settings.PASSWORDS == "staff" and site == "admin")


def for_passwords(view: Callable[..., Any], *, of_staff: bool = False) -> Callable[..., Any]:
    """Decorate a view that does not exist without passwords. of_staff: it also exists if only staff may use them."""

    @wraps(view)
    def guarded(request: HttpRequest, *arguments: Any, **named: Any) -> Any:
        if settings.PASSWORDS == "off" or (settings.PASSWORDS == "staff" and not of_staff):
            raise Http404
        return view(request, *arguments, **named)

    return guarded


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
