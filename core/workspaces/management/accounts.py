"""Arguments of the commands that create accounts and keys: address, password, name and expiry."""

import getpass
import sys
from argparse import ArgumentTypeError
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.core.validators import validate_email
from django.utils.dateparse import parse_datetime
from rest_framework import serializers

from core.api.fields import NameField
from core.lib.datetimes import to_utc


def add_account_arguments(parser: CommandParser, *, is_password_required: bool = True) -> None:
    parser.add_argument("--email", required=True)
    password = parser.add_mutually_exclusive_group(required=is_password_required)
    password.add_argument("--password")
    password.add_argument("--password-stdin", action="store_true", help="read the password from standard input")


def read_account(options: dict[str, Any]) -> tuple[str, str]:
    """Return address and password, prompting for a password that is not given. Raises CommandError."""
    email = options["email"].strip().lower()
    try:
        validate_email(email)
    except ValidationError as error:
        raise CommandError(f"{options['email']!r} is not an email address.") from error
    password = _read_password(options)
    if not password:
        raise CommandError("The password is empty.")
    return email, password


def read_name(text: str) -> str:
    """Return the name of a workspace, a group or a key, by the rules of the API. Raises ArgumentTypeError."""
    try:
        return str(NameField().run_validation(text))
    except serializers.ValidationError as error:
        raise ArgumentTypeError(str(error.args[0][0])) from error


def read_expiry(text: str) -> datetime:
    """Return the time at which a key expires; without an offset, in UTC. Raises CommandError."""
    with suppress(ValueError):
        if (time := parse_datetime(text)) and (expires_at := to_utc(time)):
            return expires_at
    raise CommandError(f"{text!r} is not a time such as 2027-01-01T00:00:00Z.")


def _read_password(options: dict[str, Any]) -> str:
    if options["password_stdin"]:
        return sys.stdin.readline().rstrip("\r\n")
    if options["password"] is not None or not sys.stdin.isatty():
        return options["password"] or ""
    password = getpass.getpass("Password: ")
    if getpass.getpass("Password (again): ") != password:
        raise CommandError("The passwords differ.")
    return password
