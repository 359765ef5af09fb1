"""The documentation in Chromium: every page in every look, search, samples, theme, and "Try it" in the reference."""

import json
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

from emails.models import Email
from tests.conftest import make_account, make_domain, make_key
from tests.console.dashboard import axe
from tests.console.dashboard.browser import LOOKS, chromium, visited
from tests.console.documentation.test_pages import PATHS, response_to

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture
def visit(browser, live_server):
    with documentation_in(browser, live_server, look=(1440, "light")) as visit:
        yield visit


@contextmanager
def documentation_in(browser, live_server, *, look):
    """Yield a page without complaints in a look: its width and its color scheme."""
    width, scheme = look
    with visited(browser, live_server.url, viewport={"width": width, "height": 900}, color_scheme=scheme) as visit:
        visit.page.context.set_default_timeout(60_000)
        yield visit
    assert visit.complaints == []


def longest_pages():
    """Return the longest page of each template."""
    pages = sorted([*PATHS, "/docs/search?q=email"], key=lambda path: len(response_to(path).content))
    return {response_to(path).templates[0].name: path for path in pages}.values()


def looks_and_pages():
    """Yield the longest pages in every look, and all pages in both widths and both schemes."""
    for look in LOOKS:
        yield pytest.param(*look.values, longest_pages, id=f"{look.id}-longest", marks=look.marks)
    for look in LOOKS[:2]:
        yield pytest.param(*look.values, lambda: PATHS, id=f"{look.id}-all", marks=pytest.mark.long)


@pytest.mark.parametrize(("look", "pages"), list(looks_and_pages()))
def test_the_pages_are_accessible_and_fit_the_screen(browser, live_server, look, pages):
    with documentation_in(browser, live_server, look=look) as visit:
        problems = []
        for path in pages():
            page = visit.go(path)
            problems += [f"{path}: {violation}" for violation in axe.violations(page)]
            problems += [path] if visit.is_wider_than_window() else []
        assert problems == []
        visit.go("/docs/monitoring")
        visit.keep_screenshot(f"documentation-{look[0]}-{look[1]}")


def test_the_contents_open_on_a_narrow_screen_and_the_theme_of_the_dashboard_applies(browser, live_server):
    with documentation_in(browser, live_server, look=(390, "light")) as visit:
        visit.page.context.add_init_script("localStorage.setItem('adminTheme', JSON.stringify('dark'))")
        page = visit.go("/docs/")
        page.get_by_role("button", name="Contents").click()
        page.get_by_role("navigation", name="Contents").get_by_role("link", name="Settings").click()
        page.get_by_role("heading", name="Settings", exact=True).wait_for()
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_reader_searches_while_typing_and_chooses_a_theme_and_the_language_of_all_samples(visit):
    page = visit.go("/docs/")
    page.get_by_role("button", name="Dark theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("localStorage.getItem('adminTheme')") == '"dark"'

    page.keyboard.press("/")
    page.keyboard.type("cancel a scheduled")
    results = page.get_by_role("region", name="Search results").get_by_role("link")
    expect(results.first).to_be_visible(timeout=60_000)
    page.keyboard.press("ArrowDown")
    expect(results.first).to_be_focused()
    page.get_by_role("region", name="Search results").get_by_role("link", name="Cancel a scheduled email").click()
    expect(page).to_have_url(f"{visit.base_url}/docs/api/emails#cancelEmail", timeout=60_000)

    page.get_by_role("tab", name="Python").first.click()
    chosen = page.get_by_role("tab", name="Python")
    assert [tab.get_attribute("aria-selected") for tab in chosen.all()] == ["true"] * chosen.count()
    page = visit.go("/docs/guides/sending")
    expect(page.get_by_role("tab", name="Python").first).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("tabpanel", name="Python").first).to_be_visible()


def test_a_reader_copies_a_page_as_markdown_with_the_keyboard(visit):
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    # The live server of pytest-django serves the file of a guide, not the view.
    page = visit.go("/docs/api/streams")
    page.get_by_role("button", name="Copy page").focus()
    page.keyboard.press("Enter")
    status = page.locator(".page-actions").get_by_role("status")
    expect(status).to_have_text("Copied as Markdown.")
    assert axe.violations(page) == []
    assert page.evaluate("navigator.clipboard.readText()") == response_to("/docs/api/streams.md").content.decode()

    # Browsers have no clipboard for pages without TLS.
    page.context.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page = visit.go("/docs/guides/streams")
    page.get_by_role("button", name="Copy page").click()
    expect(status.get_by_role("link")).to_have_attribute("href", "/docs/guides/streams.md")
    assert axe.violations(page) == []
    assert not visit.is_wider_than_window()


def test_a_search_works_without_script(browser, live_server):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{live_server.url}/docs/")
    page.get_by_role("searchbox").fill("webhook")
    page.get_by_role("searchbox").press("Enter")
    expect(page.locator("#results").get_by_role("link").first).to_be_visible(timeout=60_000)
    context.close()


def test_try_it_sends_a_request_with_a_key_that_ends_with_the_tab_and_shows_errors(visit, browser):
    account = make_account("alice")
    make_domain(account.workspace, "alice.example")
    key = make_key(account.workspace)
    page = visit.go("/docs/api/emails")
    operation = page.locator("#sendEmail")
    operation.get_by_text("Try it").click()
    operation.get_by_label("API key").fill(key)
    email = {"from": "hello@alice.example", "to": "ada@example.com", "subject": "Hello", "text": "Hello"}
    operation.get_by_label("Body").fill(json.dumps(email))
    operation.get_by_role("button", name="Send request").click()
    expect(operation.get_by_role("status")).to_contain_text('"status": "queued"', timeout=60_000)
    assert Email.objects.filter(workspace=account.workspace).count() == 1

    # The key is in the fields of the other operations and pages of this tab, and nowhere else.
    expect(page.locator("#listEmails input[name=key]")).to_have_value(key)
    assert page.evaluate("Object.values(localStorage).some((value) => value.includes('pr_'))") is False
    other = visit.page.context.new_page()
    other.goto(f"{visit.base_url}/docs/api/emails")
    assert other.locator("#sendEmail input[name=key]").input_value() == ""

    # Chromium reports every response with an error.
    visit.page.remove_listener("console", visit._record)
    page = visit.go("/docs/api/account")
    page.locator("#getMe").get_by_text("Try it").click()
    page.locator("#getMe").get_by_label("API key").fill("pr_wrong")
    page.locator("#getMe").get_by_role("button", name="Send request").click()
    expect(page.locator("#getMe").get_by_role("status")).to_contain_text("invalid_api_key", timeout=60_000)
