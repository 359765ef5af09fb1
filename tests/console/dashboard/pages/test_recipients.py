"""The notice on every page while no recipient gets email (docs/decisions/0387)."""

import pytest
from django.test import Client

from core.delivery.recipients import RecipientSetting, read_recipients
from core.workspaces.recipients.caps import Cap
from core.workspaces.recipients.rules import read_rules
from tests.rows import each

NOTICE = "No recipient gets email from this installation"
SOME = "Only some recipients get email from this installation"
PATHS = [
    "/dashboard/", "/dashboard/emails/", "/dashboard/inbox/", "/dashboard/usage/", "/dashboard/keys/",
    "/dashboard/nothing-here/",
]  # fmt: skip
STAFF_PATHS = ["/admin/", "/admin/queue/", "/admin/workspaces/workspace/", "/admin/inbox/caughtmail/"]


def rules_of(**fields) -> RecipientSetting:
    """Return the setting that names a file with rules."""
    return RecipientSetting(rules=read_rules(**fields))


@each(("setting", "text"), [
    (read_recipients("captured"), f"{NOTICE}: the built-in inbox captures all emails."),
    (read_recipients("redirect:qa@test-team.example"), f"{NOTICE}: all emails go to qa@test-team.example."),
    (rules_of(allow=[]), f"{SOME}: emails to others are refused."),
    (rules_of(allow=[], otherwise="capture"), f"{SOME}: the built-in inbox captures emails to others."),
    (
        rules_of(allow=[], otherwise="redirect", redirect_to="qa@a.example"),
        f"{SOME}: emails to others go to qa@a.example.",
    ),
    (rules_of(caps=[Cap(5, 3600)]), "This installation limits how many emails a recipient gets."),
])  # fmt: skip
def test_every_page_says_so(owner, staff, settings, setting, text):
    settings.RECIPIENTS = setting
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
    settings.RECIPIENTS = rules_of(allow=[])
    page = owner.get("/dashboard/", headers={"accept-language": "de"}).text
    assert "Nur bestimmte Empfänger erhalten E-Mails von dieser Installation: Andere werden abgelehnt." in page


def test_no_page_says_so_otherwise(owner, staff):
    pages = owner.get("/dashboard/").text + staff.get("/admin/").text
    assert not [text for text in (NOTICE, SOME, "This installation limits") if text in pages]


def test_the_inbox_is_in_the_menu_while_a_file_captures(owner, settings):
    settings.DELIVERY_TRANSPORT = "smtp"
    for otherwise, is_shown in (("refuse", False), ("capture", True)):
        settings.RECIPIENTS = rules_of(allow=[], otherwise=otherwise)
        assert ('href="/dashboard/inbox/"' in owner.get("/dashboard/emails/").text) == is_shown
