"""The command palette in Chromium."""

import pytest
from playwright.sync_api import expect

from core.workspaces.models import User
from tests.conftest import make_account, make_domain
from tests.console.dashboard.axe import violations
from tests.console.dashboard.browser import sign_in, use_session
from tests.console.dashboard.conftest import make_email

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_an_owner_finds_everything_with_the_keyboard(visit):
    account = make_account("alice", plan="pro")
    email = make_email(account.workspace, subject="Your receipt")
    make_domain(account.workspace, "alice.example")
    sign_in(visit, account.owner.email)
    page = visit.go("/dashboard/domains/")
    palette = page.locator("#palette")
    expect(palette).to_be_hidden()

    page.keyboard.press("Control+k")
    expect(palette.get_by_role("option", name="Overview")).to_be_visible()
    assert not violations(page)
    visit.keep_screenshot("palette")
    page.keyboard.type("webh")
    expect(palette.get_by_role("option").nth(0)).to_have_text("webhookWebhooks")
    page.keyboard.press("ArrowDown")
    expect(palette.get_by_role("option").nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{visit.base_url}/dashboard/webhooks/")
    # Scripts have run.
    page.wait_for_load_state()

    page.keyboard.press("Control+k")
    page.keyboard.type("ada@example.com")
    expect(palette.get_by_role("option").first).to_have_text("personada@example.com")
    page.keyboard.press("Enter")
    expect(page.locator(".pr-hero h2")).to_have_text("ada@example.com")
    assert not violations(page)

    page.wait_for_load_state()
    page.get_by_role("link", name="Go to").click()
    page.keyboard.type(email.id)
    # Enter waits for the answer to the whole text.
    page.keyboard.press("Enter")
    expect(page.locator(".pr-hero h2")).to_have_text("Your receipt")
    page.wait_for_load_state()
    visit.go("/dashboard/webhooks/")
    page.keyboard.press("Control+k")
    expect(palette.get_by_role("option").first).to_have_text("historyYour receiptEmails")
    assert not violations(page)
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()

    page.keyboard.press("Control+k")
    page.keyboard.type("send test")
    expect(palette.get_by_role("option").first).to_have_text("sendSend a test email")
    assert not violations(page)
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"A test email to {account.owner.email} was accepted.")).to_be_visible()
    assert not visit.complaints


def test_the_staff_finds_a_workspace_with_the_keyboard(visit):
    account = make_account("alice", plan="pro")
    staff = User.objects.create_superuser("staff@postrider.example", "correct horse battery")
    use_session(visit, staff)
    page = visit.go("/admin/workspaces/workspace/")
    palette = page.locator("#palette")
    assert not violations(page)

    page.keyboard.press("Control+k")
    expect(palette.get_by_role("option", name="Queue")).to_be_visible()
    assert not violations(page)
    visit.keep_screenshot("palette-staff")
    page.keyboard.type(account.workspace.name)
    expect(palette.get_by_role("option").first).to_contain_text(account.workspace.name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Emails by day")).to_be_visible()
    page.wait_for_load_state()
    page.get_by_role("link", name="Go to").click()
    expect(palette).to_be_visible()
    assert not visit.complaints
