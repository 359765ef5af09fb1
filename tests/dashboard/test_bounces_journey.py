"""The page Bounces in Chromium, in both languages, on a desktop and a phone, in light and dark mode."""

import pytest
from playwright.sync_api import expect

from emails.models import Email
from tests.conftest import make_account
from tests.dashboard.axe import violations
from tests.dashboard.browser import sign_in
from tests.dashboard.scenario import make_bounces
from workspaces.models import User

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_page_is_accessible_and_fits_the_screen(look, language):
    account = make_account("alice")
    make_bounces(account.workspace)
    sign_in(look, account.owner.email)
    User.objects.update(language=language)
    problems = []
    for name, query in {"bounced": "", "empty": "?event=failed&days=7"}.items():
        page = look.go(f"/dashboard/bounces/{query}")
        page.wait_for_function("window.Alpine !== undefined")
        look.keep_screenshot(f"bounces-{language}-{look.name}-{name}")
        problems += violations(page)
        problems += ["wider than the window"] if look.is_wider_than_window() else []
    assert problems == []
    assert not look.complaints


def test_the_page_is_opened_by_its_shortcut_and_leads_to_an_example(visit):
    account = make_account("alice")
    make_bounces(account.workspace)
    sign_in(visit, account.owner.email)
    page = visit.page

    page.keyboard.press("g")
    page.keyboard.press("b")
    expect(page.get_by_role("table", name="Reasons")).to_contain_text("The mailbox is full.")
    page.get_by_role("link", name="Deferred").click()
    expect(page.get_by_role("heading", name="No deferrals in this period")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="Example The mailbox is full.").click()

    expect(page).to_have_url(f"{visit.base_url}/dashboard/emails/{Email.objects.get().id}/")
