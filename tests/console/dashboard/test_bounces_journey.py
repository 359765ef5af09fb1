"""The page Bounces in Chromium: its shortcut and its links."""

import pytest
from playwright.sync_api import expect

from emails.models import Email
from tests.conftest import make_account
from tests.console.dashboard.browser import sign_in
from tests.console.dashboard.scenario import make_bounces

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


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
