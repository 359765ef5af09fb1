"""A text as a square that a phone's camera reads (docs/decisions/0061)."""

import segno
from django.utils.safestring import SafeString, mark_safe


def drawn(text: str) -> SafeString:
    """Return an inline SVG, black on white with its quiet zone, whatever the colours of the page."""
    code = segno.make(text, error="m", micro=False, boost_error=False)
    # Nothing of the text stands in it but the places of the squares.
    return mark_safe(code.svg_inline(light="#fff", omitsize=True, svgclass=None, lineclass=None))  # noqa: S308
