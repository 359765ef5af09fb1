"""Three tasks with the keyboard alone, in Chromium: sign in, create a key, find and suppress a recipient."""

import pytest
from playwright.sync_api import Page, expect

from suppressions.models import Suppression
from tests.conftest import PASSWORD, make_account
from tests.console.dashboard.browser import sign_in
from tests.console.dashboard.conftest import make_email

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def press_until(page: Page, name: str, *, key: str = "Tab", most: int = 40) -> None:
    """Press a key until an element with this text, label or value has the focus."""
    for _ in range(most):
        page.keyboard.press(key)
        text = page.evaluate(
            "(({ labels, innerText, value, ariaLabel }) => [labels?.[0]?.innerText, innerText, ariaLabel, value]"
            ".find((one) => one?.trim()) ?? '')(document.activeElement)"
        )
        if name in text:
            return
    pytest.fail(f"{name} was not reached")


def test_signing_in(visit):
    account = make_account("alice")
    make_email(account.workspace)
    page = visit.go("/dashboard/login/")
    expect(page.get_by_label("Email address")).to_be_focused()
    page.keyboard.type(account.owner.email)
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Latest emails")).to_be_visible()
    assert not visit.complaints


def test_creating_a_key(visit):
    sign_in_with_an_email(visit)
    page = visit.go("/dashboard/keys/")
    press_until(page, "Skip to the content", most=1)
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "page-content"
    page = visit.go("/dashboard/keys/add/")
    expect(page.get_by_label("Name", exact=False).first).to_be_focused()
    page.keyboard.type("Checkout")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Copy your API key now.")).to_be_visible()
    # A screen reader begins with what happened.
    assert "Copy your API key now." in page.evaluate("document.activeElement.innerText")
    press_until(page, "Copy", most=3)
    assert not visit.complaints


def test_suppressing_a_recipient(visit):
    sign_in_with_an_email(visit)
    page = visit.go("/dashboard/webhooks/")
    page.wait_for_load_state()
    page.keyboard.press("Control+k")
    page.keyboard.type("suppress addr")
    expect(page.locator("#palette").get_by_role("option").first).to_contain_text("Suppress addresses")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{visit.base_url}/dashboard/suppressions/add/")
    page.wait_for_load_state()
    page.keyboard.type("ada@example.com")
    press_until(page, "Add addresses")
    page.keyboard.press("Enter")
    expect(page.get_by_text("ada@example.com").first).to_be_visible()
    assert Suppression.objects.filter(email="ada@example.com").exists()
    assert not visit.complaints


def sign_in_with_an_email(visit) -> None:
    account = make_account("alice")
    make_email(account.workspace)
    sign_in(visit, account.owner.email)
