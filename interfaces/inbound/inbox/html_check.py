"""HTML check of a message: markup that some mail clients remove, ignore or show differently."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

# Longer HTML is checked up to here. Gmail cuts off longer messages.
CHECKED_CHARACTERS = 256 * 1024
GMAIL_LIMIT_BYTES = 102 * 1024

TOO_LONG = _("Gmail cuts off HTML of more than 102 kB and hides the rest behind a link.")
NO_TEXT = _("There is no text version. Some clients and spam filters expect one.")


@dataclass(frozen=True)
class MarkupRule:
    """pattern: takes linear time on any text; within a tag, it stops at the next angle bracket."""

    pattern: re.Pattern[str]
    problem: str | Promise


def _rule(pattern: str, problem: str | Promise) -> MarkupRule:
    return MarkupRule(re.compile(pattern, re.IGNORECASE), problem)


RULES = (
    _rule(r"<script\b", _("Scripts are removed by all mail clients.")),
    _rule(r"<(?:form|input|select|textarea)\b", _("Forms do not work in most mail clients. Link to a page instead.")),
    _rule(r"<(?:video|audio|iframe|object|embed)\b", _("Embedded media is not shown in most mail clients.")),
    _rule(r"<link\b[^<>]*stylesheet", _("External style sheets are not loaded. Use inline styles.")),
    _rule(r"@font-face|fonts\.googleapis\.com", _("Web fonts are shown by few mail clients. Name a fallback font.")),
    _rule(r"<svg\b", _("SVG is not shown in Gmail and Outlook. Use a PNG.")),
    _rule(r"""\bsrc\s*=\s*["']?data:""", _("Images in data: URLs are not shown in Gmail. Attach them inline.")),
    _rule(r"<img\b(?:(?!\balt\s*=)[^<>])*>", _("An image has no alternative text, shown while it is blocked.")),
    _rule(r"\bdisplay\s*:\s*(?:inline-)?(?:flex|grid)", _("Outlook on Windows ignores flexbox and grid. Use tables.")),
    _rule(r"\bposition\s*:\s*(?:absolute|fixed|sticky)", _("Positioned elements are moved or removed by Gmail.")),
    _rule(r"\bbackground-image\s*:", _("Outlook on Windows does not show background images.")),
    _rule(
        r"""\b(?:href|src)\s*=\s*["'](?![a-z][a-z0-9+.-]*:|//|\#|["'])""",
        _("Relative links do not work in emails. Use complete addresses with https."),
    ),
)


def check_html(html: str, *, has_text: bool) -> list[str]:
    """Return the problems of a message's HTML, one sentence each."""
    return [str(problem) for problem in _problems(html, has_text=has_text)]


def _problems(html: str, *, has_text: bool) -> Iterator[str | Promise]:
    checked = html[:CHECKED_CHARACTERS]
    yield from (rule.problem for rule in RULES if rule.pattern.search(checked))
    if len(html.encode()) > GMAIL_LIMIT_BYTES:
        yield TOO_LONG
    if not has_text:
        yield NO_TEXT
