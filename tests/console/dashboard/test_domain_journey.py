"""The page of a domain in Chromium: its records are copied and downloaded, and a host for its links is chosen."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from core.workspaces.models import User
from tests.conftest import make_account
from tests.console.dashboard.axe import page_problems, violations
from tests.console.dashboard.browser import sign_in
from tests.console.dashboard.scenario import checked_domain

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("window", ["phone", pytest.param("visit", marks=pytest.mark.long)])
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
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert violations(page) == []
    expect(page.get_by_role("button", name="Copied")).to_be_hidden()
    expect(page.get_by_role("button", name="Copy value").first).to_contain_text("Copy")
    copied = page.evaluate("navigator.clipboard.readText()")
    with page.expect_download() as download:
        page.get_by_role("link", name="Zone file").click()

    assert copied == f"v=DKIM1; k=rsa; p={domain.dkim_keys.get().public_key}"
    assert download.value.suggested_filename == f"{domain.name}.zone.txt"
    assert Path(download.value.path()).read_text().startswith(f"$ORIGIN {domain.name}.\n")
    assert page_problems(visit, f"domain-{window}") == []
    assert not visit.complaints


WORDS = {
    "en": (
        "Links and tracking", "Subdomain for links", "Track clicks", "Save", "This must be one label of a host name",
        "Clicks are not tracked.",
    ),
    "de": (
        "Links und Tracking", "Subdomain für Links", "Klicks erfassen", "Speichern", "Geben Sie einen Teil eines",
        "Klicks werden nicht erfasst.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("window", ["visit", pytest.param("phone", marks=pytest.mark.long)])
@pytest.mark.parametrize("language", ["de", pytest.param("en", marks=pytest.mark.long)])
def test_a_host_for_links_is_chosen(request, settings, window, language):
    settings.TRACKING_HOST = "mail.service.example"
    visit = request.getfixturevalue(window)
    title, subdomain, clicks, save, invalid, no_clicks = WORDS[language]
    account = make_account("alice")
    domain = checked_domain(account.workspace)
    sign_in(visit, account.owner.email)
    User.objects.update(language=language)

    page = visit.go(f"/dashboard/domains/{domain.id}/")
    page.get_by_role("link", name=title).click()
    assert page_problems(visit, f"tracking-form-{window}-{language}") == []
    page.get_by_label(subdomain).fill("a.b")
    page.get_by_role("button", name=save).click()
    expect(page.get_by_text(invalid)).to_be_visible()
    visit.keep_screenshot(f"tracking-form-invalid-{window}-{language}")
    page.get_by_label(subdomain).fill("links")
    page.get_by_label(clicks).uncheck()
    page.get_by_role("button", name=save).click()

    expect(page.get_by_text(no_clicks)).to_be_visible()
    expect(page.locator("#links code")).to_have_text(f"links.{domain.name}")
    expect(page.locator(".pr-record").filter(has_text="CNAME").filter(has_text="mail.service.example")).to_have_count(1)
    assert page_problems(visit, f"tracking-host-{window}-{language}") == []
    assert not visit.complaints
