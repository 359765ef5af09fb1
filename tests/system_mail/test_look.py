"""A system email in Chromium: accessible, in light and dark mode, on a screen and a phone."""

import pytest
from playwright.sync_api import expect

from tests.dashboard.axe import violations
from tests.dashboard.browser import SCREENSHOTS, chromium
from tests.system_mail.test_html import TEXTS, rendered

pytestmark = pytest.mark.browser


DEFAULT, BRIGHT, DARK, MIDDLE = "#4f46e5", "#fde047", "#14532d", "#767676"


@pytest.mark.parametrize("color", [DEFAULT, BRIGHT, DARK, MIDDLE])
def test_is_accessible_in_every_mode(settings, color):
    settings.SYSTEM_COLOR = color
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    problems = []
    with chromium() as browser:
        for scheme in ("light", "dark"):
            for width in (1440, 390):
                page = browser.new_page(viewport={"width": width, "height": 700}, color_scheme=scheme)
                for kind, text in TEXTS if color == DEFAULT else TEXTS[:1]:
                    page.set_content(rendered(kind, text))
                    expect(page.get_by_role("heading", name="Join Shop")).to_be_visible()
                    page.screenshot(path=SCREENSHOTS / f"system-email-{kind}-{width}-{scheme}-{color[1:]}.png")
                    problems += violations(page)
                    if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
                        problems.append(f"{kind}: wider than the window")
                page.close()

    assert not problems
