"""Debian's Chromium, with a record of console errors and dialogs."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, expect, sync_playwright

from core.workspaces.models import User
from tests.config.tls_proxy import Quiet, serving
from tests.conftest import IS_FULL_RUN

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# The width changes the layout, and the scheme the colors: two of the four find almost everything.
LOOKS = [
    pytest.param((1440, "light"), id="1440-light"),
    pytest.param((390, "dark"), id="390-dark"),
    pytest.param((1440, "dark"), id="1440-dark", marks=pytest.mark.long),
    pytest.param((390, "light"), id="390-light", marks=pytest.mark.long),
]


def looks_in(first: str, second: str) -> list[Any]:
    """Return each width in each scheme with a language, so that each language has both widths and both schemes.

    Most runs have one of the four: `page_problems` (axe.py) also measures the width of a phone.
    """
    languages = (first, first, second, second)
    return [
        pytest.param(
            *look.values, language, id=f"{look.id}-{language}", marks=[pytest.mark.long] * (look is not LOOKS[0])
        )
        for look, language in zip(LOOKS, languages, strict=True)
    ]


# Other tests may load the machine.
expect.set_options(timeout=30_000)
# For manual review; ignored by git. Not with --full, where they would take a fifth of the time of the page tests.
SCREENSHOTS = Path(__file__).parents[3] / "var" / "screenshots"


class Visit:
    """One browser page, with its console errors and opened dialogs. name: of a look, for its screenshots."""

    name = ""

    def __init__(self, context: BrowserContext, base_url: str) -> None:
        self.base_url = base_url
        self.complaints: list[str] = []
        self.dialogs: list[str] = []
        self.page = context.new_page()
        self.page.on("console", self._record)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._dismiss)

    def _dismiss(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _record(self, message: ConsoleMessage) -> None:
        # The browser warns if a slow machine uses a preloaded font some seconds after the page has loaded.
        is_late_preload = "was preloaded using link preload but not used within a few seconds" in message.text
        if message.type in {"error", "warning"} and not is_late_preload:
            self.complaints.append(f"{self.page.url}: {message.text}")

    def go(self, path: str) -> Page:
        self.page.goto(self.base_url + path)
        return self.page

    def is_wider_than_window(self) -> bool:
        return bool(self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))

    def keep_screenshot(self, name: str) -> None:
        if not IS_FULL_RUN:
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def use_session(visit: Visit, user: User) -> None:
    """Sign a user in without the form, which tests/console/dashboard/auth/test_browser_accounts.py fills in."""
    client = Client()
    client.force_login(user)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    visit.page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": visit.base_url}])


def sign_in(visit: Visit, email: str) -> None:
    """Open the overview as a user."""
    use_session(visit, User.objects.get(email=email))
    page = visit.go("/dashboard/")
    expect(page.get_by_role("heading", name="Latest emails")).to_be_visible()
    # Scripts have run.
    page.wait_for_load_state()


@contextmanager
def visited(browser: Browser, base_url: str, **options: Any) -> Iterator[Visit]:
    """Open a page in a context with these options, such as the size of a phone."""
    context = browser.new_context(**options)
    yield Visit(context, base_url)
    context.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.fail(f"The browser tests need {CHROMIUM}; on Debian, apt-get install chromium brings it.")
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Django refuses the database to a thread with a running event loop, and playwright keeps one.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def listener() -> Iterator[tuple[str, list[str]]]:
    """Run a third-party server; yield its URL and the list of requested paths."""
    requested: list[str] = []

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested.append(self.path)
            self.send_error(404)

        def do_POST(self) -> None:
            self.do_GET()

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield f"http://127.0.0.1:{port}", requested
