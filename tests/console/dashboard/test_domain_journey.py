"""The page of a domain in Chromium: its records are copied and downloaded, and a host for its links is chosen."""

from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now
from playwright.sync_api import expect

from core.workspaces.models import User
from domains.models import Domain
from tests.conftest import make_account
from tests.console.dashboard.axe import page_problems, violations
from tests.console.dashboard.browser import sign_in, visited
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


SHARING = {
    "en": ("Send to a colleague", "Create link", "Copy", "Copied", "Copy value", "You can send from", "Revoke link"),
    "de": (
        "An Kollegen senden", "Link erstellen", "Kopieren", "Kopiert", "Wert kopieren", "Sie können von",
        "Link widerrufen",
    ),
}  # fmt: skip


@pytest.mark.parametrize("window", ["phone", pytest.param("visit", marks=pytest.mark.long)])
@pytest.mark.parametrize("language", ["de", pytest.param("en", marks=pytest.mark.long)])
def test_a_colleague_sees_the_records_and_that_they_are_found(
    request, browser, live_server, settings, window, language
):
    """The pages of both refresh themselves."""
    settings.PUBLIC_URL = live_server.url
    visit = request.getfixturevalue(window)
    share, create, copy, copied, copy_value, found, revoke = SHARING[language]
    account = make_account("alice")
    domain = checked_domain(account.workspace)
    Domain.objects.update(zone_name=domain.name, dns_provider="cloudflare")
    sign_in(visit, account.owner.email)
    User.objects.update(language=language)
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])

    page = visit.go(f"/dashboard/domains/{domain.id}/")
    assert page_problems(visit, f"domain-{window}-{language}") == []
    page.get_by_role("link", name=share).click()
    page.get_by_role("button", name=create).click()
    page.get_by_role("button", name=copy, exact=True).click()
    expect(page.get_by_role("button", name=copied)).to_be_visible()
    assert page_problems(visit, f"domain-share-{window}-{language}") == []
    link = page.evaluate("navigator.clipboard.readText()")
    locale = {"de": "de-DE", "en": "en-GB"}[language]
    with visited(browser, live_server.url, viewport={"width": 390, "height": 844}, locale=locale) as colleague:
        shown = colleague.go(link.removeprefix(live_server.url))
        expect(shown.get_by_role("button", name=copy_value)).to_have_count(4)
        assert page_problems(colleague, f"domain-shared-{window}-{language}") == []
        Domain.objects.update(status="verified", findings=valid_findings(domain), last_checked_at=Now())
        expect(shown.locator("#summary")).to_contain_text(found)
        assert not colleague.complaints
        page.get_by_role("button", name=revoke).click()
        expect(page.get_by_role("button", name=create)).to_be_visible()
        assert colleague.go(link.removeprefix(live_server.url)).locator(".pr-record").count() == 0
    assert not visit.complaints


def valid_findings(domain: Domain) -> dict[str, Any]:
    valid = {"verdict": "right", "found": None, "error": None, "note": None, "value": None}
    keys = dict.fromkeys(domain.findings["keys"], valid)
    return {**dict.fromkeys(("spf", "dmarc", "return_path", "mail"), valid), "keys": keys}
