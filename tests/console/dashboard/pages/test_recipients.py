"""The notice on every page while no recipient gets email (docs/decisions/0387)."""

import pytest
from django.test import Client

from core.delivery.recipients import read_recipients
from tests.rows import each

NOTICE = "No recipient gets email from this installation"
PATHS = [
    "/dashboard/", "/dashboard/emails/", "/dashboard/inbox/", "/dashboard/usage/", "/dashboard/keys/",
    "/dashboard/nothing-here/",
]  # fmt: skip
STAFF_PATHS = ["/admin/", "/admin/queue/", "/admin/workspaces/workspace/", "/admin/inbox/caughtmail/"]


@each(("value", "text"), [
    ("captured", f"{NOTICE}: the built-in inbox captures all emails."),
    ("redirect:qa@test-team.example", f"{NOTICE}: all emails go to qa@test-team.example."),
])  # fmt: skip
def test_every_page_says_so(owner, staff, settings, value, text):
    settings.RECIPIENTS = read_recipients(value)
    for browser, paths in ((owner, PATHS), (staff, STAFF_PATHS)):
        for path in paths:
            assert text in browser.get(path).text, path


@pytest.mark.django_db
def test_so_do_the_pages_for_signing_in(settings):
    settings.RECIPIENTS = read_recipients("captured")
    for path in ("/dashboard/login/", "/admin/login/", "/dashboard/reset/"):
        assert NOTICE in Client().get(path).text, path


def test_in_german(owner, settings):
    settings.RECIPIENTS = read_recipients("redirect:qa@test-team.example")
    page = owner.get("/dashboard/", headers={"accept-language": "de"}).text
    assert "Kein Empfänger erhält E-Mails von dieser Installation: Alle gehen an qa@test-team.example." in page


def test_no_page_says_so_otherwise(owner, staff):
    assert NOTICE not in owner.get("/dashboard/").text + staff.get("/admin/").text
