"""From sign-up to the first email with the commands of the onboarding steps, and keyboard shortcuts, in Chromium."""

import json
import re
import subprocess

import pytest
from playwright.sync_api import expect

from domains.models import Domain
from tests.conftest import PASSWORD, make_account
from tests.console.dashboard.axe import violations
from tests.console.dashboard.browser import sign_in
from tests.console.dashboard.queue_runs import deliver_to_inbox
from tests.standards.tools import program

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def run_command(command: str, *, key: str) -> str:
    """Run a command of the page in a shell, with the key in place of the one that the page leaves out."""
    script = re.sub(r"pr_…", key, command)
    done = subprocess.run(
        [program("bash", package="bash"), "-euc", script],
        env={"PATH": "/usr/bin:/bin", "POSTRIDER_API_KEY": key, "NO_PROXY": "*"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_the_steps_lead_to_the_first_email(visit, live_server, settings):
    settings.PUBLIC_URL, settings.DELIVERY_TRANSPORT = live_server.url, "smtp"
    page = visit.go("/dashboard/signup/")
    page.get_by_label("Email address").fill("ada@lovelace.example")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Workspace").fill("Analytical Engines")
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("heading", name="Send your first email in four steps")).to_be_visible()
    expect(page.locator(".pr-steps .pr-done")).to_have_count(0)
    visit.keep_screenshot("onboarding-start")
    page.get_by_role("link", name="Create an API key").click()
    page.get_by_label("Name").fill("Shop")
    page.get_by_label("Scope").select_option("full_access")
    page.get_by_role("button", name="Create key").click()
    expect(page.locator("#created-key")).to_have_text(re.compile(r"^pr_[0-9A-Za-z]{22}_[0-9A-Za-z]{49}$"))
    key = page.locator("#created-key").inner_text().strip()

    visit.go("/dashboard/")
    domain_command = page.locator("#domain").inner_text()
    run_command(domain_command, key=key)
    page.reload()
    expect(page.locator(".pr-steps .pr-done")).to_have_count(2)
    visit.keep_screenshot("onboarding-dns")
    assert "verify" in page.locator("#dns").inner_text()
    Domain.objects.update(status="verified")
    page.reload()
    expect(page.locator(".pr-steps .pr-done")).to_have_count(3)
    assert not violations(page)
    sent = json.loads(run_command(page.locator("#curl").inner_text(), key=key))
    assert sent["status"] == "queued"
    page.get_by_role("button", name="Send a test email").click()

    expect(page.get_by_text("A test email to ada@lovelace.example was accepted.")).to_be_visible()
    expect(page.frame_locator("iframe").get_by_role("heading", name="It works")).to_be_visible()
    visit.go(f"/dashboard/emails/{sent['id']}/")
    expect(page.locator(".pr-hero")).to_contain_text("queued")
    deliver_to_inbox()
    page.reload()
    expect(page.locator(".pr-hero")).to_contain_text("delivered")
    expect(page.locator(".pr-timeline")).to_contain_text("Delivered")
    visit.go("/dashboard/")
    expect(page.get_by_role("heading", name="Send your first email in four steps")).to_have_count(0)
    expect(page.locator(".pr-of-delivered")).to_contain_text("100%")
    assert not visit.complaints


def test_pages_are_opened_and_searched_with_the_keyboard(visit):
    sign_in(visit, make_account("alice").owner.email)
    page = visit.page
    page.keyboard.press("g")
    page.keyboard.press("w")
    expect(page).to_have_url(re.compile(r"/dashboard/webhooks/$"))
    page.wait_for_load_state()
    # This page has no search field: the search of emails opens.
    page.keyboard.press("/")
    expect(page).to_have_url(re.compile(r"/dashboard/emails/"))
    search = page.locator("main input[type=search]").first
    expect(search).to_be_focused()
    page.keyboard.type("g/w?")
    expect(search).to_have_value("g/w?")
    visit.go("/dashboard/suppressions/")
    page.keyboard.press("/")
    expect(page.locator("main input[type=search]")).to_be_focused()
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("?")

    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_be_visible()
    assert not violations(page)
    visit.keep_screenshot("shortcuts")
    dialog.get_by_label("Use keyboard shortcuts in this browser").uncheck()
    dialog.get_by_role("button", name="Close").click()
    page.keyboard.press("?")
    expect(dialog).to_be_hidden()
    # Turned off, they are turned on again through the account menu.
    visit.go("/dashboard/#shortcuts")
    expect(dialog).to_be_visible()
    assert not visit.complaints
