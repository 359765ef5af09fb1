"""Accessibility checks with axe-core, and the width of a page."""

import functools
import json

from playwright.sync_api import Page
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.console.dashboard.browser import Visit
from tests.standards.tools import npm_modules

MODULE = "axe-core@4.14.1"
# WCAG rules and best practices.
OPTIONS = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], "iframes": False}
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
PHONE = {"width": 390, "height": 844}


@functools.cache
def source() -> str:
    return (npm_modules(MODULE) / "axe-core" / "axe.min.js").read_text()


def violations(page: Page) -> list[str]:
    """Return a line for each violation: the rule, and the first elements that violate it."""
    page.evaluate(source())
    violations = page.evaluate(f"axe.run(document, {json.dumps(OPTIONS)}).then((result) => result.violations)")
    return [f"{one['id']}: {[node['target'] for node in one['nodes'][:3]]}" for one in violations]


def page_problems(visit: Visit, name: str) -> list[str]:
    """Keep a screenshot; return the violations, and whether the page is wider than its window or than a phone."""
    visit.keep_screenshot(f"{name}-{visit.name}")
    window = visit.page.viewport_size
    problems = violations(visit.page) + _widths(visit.page)
    visit.page.set_viewport_size(PHONE)
    problems += _widths(visit.page)
    visit.page.set_viewport_size(window)
    return [f"{name}: {problem}" for problem in problems]


def _widths(page: Page) -> list[str]:
    try:
        # Charts are drawn again after the window has changed.
        page.wait_for_function(FITS)
    except PlaywrightTimeout:
        return [f"wider than {page.viewport_size['width']} pixels"]
    return []
