"""Templates in the requests of the dialects."""

from typing import Any

# The HTML of a template that has text only: a template of Postrider always has HTML.
TEXT_ONLY_HTML = "<!-- text only -->"


def with_html(native: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a template, with HTML if they have text only."""
    if native.get("textContent") and not native.get("htmlContent"):
        return native | {"htmlContent": TEXT_ONLY_HTML}
    return native
