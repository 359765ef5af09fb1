"""`manage.py create_staff`: the account of an operator."""

import io
import sys

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from core.workspaces.models import User
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db
EMAIL = "ops@example.com"


def create_staff(email=EMAIL, **options):
    output = io.StringIO()
    call_command("create_staff", email=email, stdout=output, **options)
    return output.getvalue()


def test_the_account_can_sign_in_to_the_staff_admin(settings):
    output = create_staff(password=PASSWORD)
    assert output == f"{EMAIL} can sign in at {settings.PUBLIC_URL}/admin/.\n"
    client = Client()
    client.post("/admin/login/", {"username": EMAIL, "password": PASSWORD})
    assert client.get("/admin/").status_code == 200


def test_the_password_is_read_from_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{PASSWORD}\n"))
    create_staff(password_stdin=True)
    assert User.objects.get(email=EMAIL).check_password(PASSWORD)


def test_an_existing_account_becomes_staff_with_its_password_only(alice):
    with pytest.raises(CommandError, match="Wrong password for the existing account"):
        create_staff(alice.owner.email, password="another password")
    create_staff(alice.owner.email, password=PASSWORD)
    alice.owner.refresh_from_db()
    assert (alice.owner.is_staff, alice.owner.is_superuser) == (True, True)


@pytest.mark.parametrize(
    ("email", "password", "message"),
    [
        ("nobody", PASSWORD, "'nobody' is not an email address."),
        (EMAIL, "", "The password is empty."),
        (EMAIL, "password12", "This password is too common."),
        (EMAIL, "short", "at least 10 characters"),
    ],
    ids=["address", "empty", "common", "short"],
)
def test_an_invalid_account_is_refused(email, password, message):
    with pytest.raises(CommandError, match=message):
        create_staff(email, password=password)
    assert not User.objects.exists()
