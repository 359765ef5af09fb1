"""A system email in Chromium: accessible, in light and dark mode, on a screen and a phone."""

import pytest
from playwright.sync_api import expect

from tests.console.dashboard.axe import violations
from tests.console.dashboard.browser import LOOKS, chromium, visited
from tests.console.system_mail.test_html import TEXTS, rendered

DEFAULT, BRIGHT, DARK, MIDDLE = "#4f46e5", "#fde047", "#14532d", "#767676"


@pytest.mark.browser
@pytest.mark.parametrize("look", LOOKS)
def test_is_accessible_in_every_mode(settings, look):
    width, scheme = look
    problems = []
    window = {"width": width, "height": 700}
    with chromium() as browser, visited(browser, "", viewport=window, color_scheme=scheme) as visit:
        for color in (DEFAULT, BRIGHT, DARK, MIDDLE):
            settings.SYSTEM_COLOR = color
            for kind, text in TEXTS if color == DEFAULT else TEXTS[:1]:
                visit.page.set_content(rendered(kind, text))
                expect(visit.page.get_by_role("heading", name="Join Shop")).to_be_visible()
                name = f"system-email-{kind}-{width}-{scheme}-{color[1:]}"
                visit.keep_screenshot(name)
                problems += [f"{name}: {violation}" for violation in violations(visit.page)]
                problems += [f"{name}: wider than the window"] if visit.is_wider_than_window() else []
    assert problems == []
