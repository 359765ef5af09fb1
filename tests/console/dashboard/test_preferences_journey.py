"""Language and time zone in Chromium: chosen, shown and used."""

from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect

from core.workspaces.models import ApiKey, User
from tests.conftest import make_account
from tests.console.dashboard.browser import sign_in, visited
from tests.console.dashboard.conftest import make_email

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def nepal(browser, live_server):
    """A browser in Kathmandu."""
    window = {"width": 1280, "height": 800}
    with visited(browser, live_server.url, viewport=window, timezone_id="Asia/Kathmandu") as visit:
        yield visit


def test_a_member_accepts_the_time_zone_of_the_browser(nepal):
    alice = make_account("alice")
    make_email(alice.workspace, created_at=datetime(2026, 1, 31, 23, 30, 5, tzinfo=UTC))
    sign_in(nepal, alice.owner.email)
    page = nepal.go("/dashboard/emails/")
    shown = page.locator("time")
    expect(shown).to_have_text("31 Jan 2026, 23:30")

    page.get_by_role("button", name="Use this time zone").click()

    expect(shown).to_have_text("1 Feb 2026, 05:15")
    expect(shown).to_have_attribute("title", "31 Jan 2026, 23:30:05 UTC")
    expect(shown).to_have_attribute("datetime", "2026-01-31T23:30:05Z")
    expect(page.locator("[data-time-zone]")).to_have_count(0)
    assert page.url.endswith("/dashboard/emails/")
    assert not nepal.complaints


def test_a_browser_in_utc_gets_no_suggestion(browser, live_server):
    with visited(browser, live_server.url, timezone_id="UTC") as visit:
        sign_in(visit, make_account("alice").owner.email)
        expect(visit.page.locator("[data-time-zone]")).to_be_hidden()


def test_a_member_chooses_a_zone_and_enters_a_time_in_it(visit):
    alice = make_account("alice")
    sign_in(visit, alice.owner.email)
    page = visit.go("/dashboard/preferences/")
    page.get_by_label("Time zone").fill("berlin")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Unknown time zone.")).to_be_visible()
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Your preferences were saved.")).to_be_visible()

    visit.go("/dashboard/keys/add/")
    page.get_by_label("Name").fill("Shop")
    page.get_by_label("Expires").select_option("custom")
    page.get_by_label("Time", exact=True).fill("2028-07-01T12:00")
    page.get_by_role("button", name="Create key").click()

    expect(page.get_by_text("1 Jul 2028, 12:00")).to_have_attribute("title", "1 Jul 2028, 10:00:00 UTC")
    assert ApiKey.objects.get().expires_at == datetime(2028, 7, 1, 10, tzinfo=UTC)
    assert not visit.complaints


def test_a_member_switches_the_language_in_the_user_menu(visit):
    alice = make_account("alice")
    sign_in(visit, alice.owner.email)
    page = visit.go("/dashboard/domains/")
    page.locator("#nav-sidebar").get_by_text(alice.owner.email).first.click()
    page.get_by_role("button", name="Deutsch").click()

    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(page.get_by_role("link", name="Posteingang")).to_be_visible()
    assert page.url.endswith("/dashboard/domains/")
    assert User.objects.get(pk=alice.owner.pk).language == "de"
    assert not visit.complaints
