"""Accessibility checks with axe-core."""

import functools
import json

from playwright.sync_api import Page

from tests.standards.tools import npm_modules

MODULE = "axe-core@4.14.1"
# WCAG rules and best practices.
OPTIONS = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], "iframes": False}


@functools.cache
def source() -> str:
    return (npm_modules(MODULE) / "axe-core" / "axe.min.js").read_text()


def violations(page: Page) -> list[str]:
    """Return a line for each violation: the rule, and the first elements that violate it."""
    page.evaluate(source())
    violations = page.evaluate(f"axe.run(document, {json.dumps(OPTIONS)}).then((result) => result.violations)")
    return [f"{one['id']}: {[node['target'] for node in one['nodes'][:3]]}" for one in violations]
