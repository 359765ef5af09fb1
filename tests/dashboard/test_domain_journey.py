"""The page of a domain in Chromium: its records are copied and downloaded."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.conftest import make_account
from tests.dashboard.axe import violations
from tests.dashboard.browser import sign_in
from tests.dashboard.scenario import checked_domain

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("window", ["visit", "phone"])
def test_the_records_are_copied_and_downloaded(request, window):
    visit = request.getfixturevalue(window)
    account = make_account("alice")
    domain = checked_domain(account.workspace)
    sign_in(visit, account.owner.email)
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visit.go(f"/dashboard/domains/{domain.id}/")
    expect(page.locator(".pr-record")).to_have_count(4)
    assert violations(page) == []
    page.get_by_role("button", name="Copy value").first.click()
    expect(page.get_by_role("button", name="Copy value").first).to_contain_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    with page.expect_download() as download:
        page.get_by_role("link", name="Zone file").click()

    assert copied == f"v=DKIM1; k=rsa; p={domain.dkim_keys.get().public_key}"
    assert download.value.suggested_filename == f"{domain.name}.zone.txt"
    assert Path(download.value.path()).read_text().startswith(f"$ORIGIN {domain.name}.\n")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    visit.keep_screenshot(f"domain-{window}")
    assert not visit.complaints
