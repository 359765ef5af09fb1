"""HTML link slots: links are found once per content, then replaced for each recipient.

A scanner, not a parser: every byte outside a link target or the footer's position is copied unchanged. Tags are read
as by HTML's tokenizer (https://html.spec.whatwg.org/multipage/parsing.html, section 13.2.5). An unclosed construct
ends the scan, and no pattern backtracks, so the time is linear on hostile input, too. See docs/decisions/0025.
"""

import functools
import html as entities
import re
from collections.abc import Callable
from dataclasses import dataclass
from html.entities import html5

from core.delivery.message.footer import UNSUBSCRIBE_PLACEHOLDER

# Longer links are not replaced: the tracking URL must fit the 2,083 characters that mail readers on Windows accept.
MAX_TARGET_BYTES = 1400
# Tracking URLs are encrypted for each recipient: 49,000 of them took a second and made a message of 9 MB.
MAX_TRACKED_LINKS = 500
PIXEL_STYLE = "display:block;width:1px;height:1px;border:0"

# Elements whose content is raw text. Mail readers run no scripts, so <noscript> is not one of them.
RAW_TEXT_ELEMENTS = {
    name: re.compile(rf"</{name}[\t\n\f\r />]", re.IGNORECASE)
    for name in ("style", "script", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "plaintext")
}
FOREIGN = frozenset({"svg", "math"})
LINKS = frozenset({"a", "area"})
UNTRACKED = "data-no-track"
# Tags that affect links or the footer's position; the scanner skips all others.
SIGNIFICANT_TAGS = (
    "area",
    "/body",
    "/html",
    *RAW_TEXT_ELEMENTS,
    "template",
    "/template",
    "svg",
    "/svg",
    "math",
    "/math",
)

_SPACE = r"[\t\n\f\r ]"
_IS = rf"{_SPACE}*+={_SPACE}*+"
_HREF = r"[hH][rR][eE][fF](?=[\t\n\f\r />=]|\Z)"
_SIGNIFICANT_TAG = "|".join(
    "".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in name) for name in SIGNIFICANT_TAGS
)


def _many(turns: str) -> str:
    """Return a pattern that repeats `turns` without backtracking.

    Not a possessive repetition, which Python before 3.11.5 gets wrong (cpython issue 106052). In groups of a thousand,
    because each repetition takes some 500 bytes of memory until its group is left.
    """
    return rf"(?>(?>(?:{turns}){{1,1000}})*)"


_NO = r"[^\t\n\f\r "
_TAG = rf"[A-Za-z]{_NO}/>]*+"
_NAME = rf"{_NO}/>]{_NO}/>=]*+"
# In double quotes, in single quotes, or unquoted. An unclosed quote extends to the end.
_VALUE = rf"(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|{_NO}\"'>]{_NO}>]*+)"
_ATTRIBUTE = rf"{_NAME}(?:{_IS}{_VALUE}?)?"
# The first alternative is the common case of the third; it saves a third of the time.
_ATTRIBUTES = _many(rf" [a-z-]++=\"[^\"]*+\"|[\t\n\f\r /]++|{_ATTRIBUTE}")
_SKIPPED = rf"(?![aA][\t\n\f\r /]|(?:{_SIGNIFICANT_TAG})[\t\n\f\r />])/?{_TAG}"
# Text and insignificant tags.
SKIPPED = re.compile(rf"(?:[^<]*+<{_SKIPPED}{_ATTRIBUTES}>){{0,1000}}")
TOKEN = re.compile(rf"<(?:(/?{_TAG})({_ATTRIBUTES})(>?)|[!?/])")
HREF = re.compile(
    _many(rf"[\t\n\f\r /]++|(?!{_HREF}){_ATTRIBUTE}")
    + rf"{_HREF}{_IS}(?:\"([^\"]*+)\"|'([^']*+)'|({_NO}\"'>]{_NO}>]*+))"
)
ATTRIBUTE = re.compile(rf"({_NAME})(?:{_IS}{_VALUE}?)?")
COMMENT_END = re.compile(r"--!?>")
CONDITION = re.compile(r"<!--\[if [^>]*>", re.IGNORECASE)

# As in an attribute: `&copy=1` and `&section` are parts of a query, not character references.
REFERENCE = re.compile(r"&(#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z][A-Za-z0-9]*+(?:;|(?!=)))")
# Browsers trim the first set from the ends of a URL and drop the second from within it.
TRIMMED = "".join(map(chr, range(0x21)))
DROPPED = {ord(character): None for character in "\t\n\r"}
TRACKABLE = re.compile(r"https?://[^\x00-\x20\x7f/?#\\][^\x00-\x1f\x7f\\]*", re.IGNORECASE)


@dataclass(frozen=True)
class HtmlLink:
    """A link target.

    start, source: its position and text in the HTML.
    target: its decoded URL.
    """

    start: int
    source: str
    target: str
    is_quoted: bool


@dataclass(frozen=True)
class Slots:
    """HTML split at its links: each text with the link after it, or None for the position of footer and pixel."""

    segments: tuple[tuple[str, HtmlLink | None], ...]
    tail: str

    @property
    def targets(self) -> list[str]:
        return [link.target for _, link in self.segments if link]


# The recipients of one email are claimed together, and their HTML differs only in links.
@functools.lru_cache(maxsize=8)
def find_slots(html: str) -> Slots:
    """Return the first MAX_TRACKED_LINKS trackable links and the footer's position."""
    scanner = Scanner(html)
    scanner.scan(0, len(html))
    return _cut(html, scanner.links, scanner.footer_position)


def has_untracked_links(html: str) -> bool:
    """Return whether there are more trackable links than are tracked."""
    # Every link begins with "<a": counting that is a hundred times faster than a scan.
    if html.count("<a") + html.count("<A") <= MAX_TRACKED_LINKS:
        return False
    scanner = Scanner(html)
    scanner.scan(0, len(html))
    return len(scanner.links) > MAX_TRACKED_LINKS


def fill(slots: Slots, *, link: Callable[[str], str] | None, pixel_url: str | None, footer: str) -> str:
    """Return the HTML for one recipient.

    link: returns the tracking URL of a target; None leaves links unchanged.
    footer: escaped HTML; the pixel follows it.
    """
    parts: list[str] = []
    position = 0
    for text, found in slots.segments:
        parts.append(text)
        if found is None:
            position = len(parts)
        else:
            parts.append(_replaced(found, link(found.target)) if link else found.source)
    parts.append(slots.tail)
    parts.insert(position, f"{footer}{_pixel(pixel_url)}" if pixel_url else footer)
    return "".join(parts)


def is_trackable(target: str) -> bool:
    """Return whether redirects to a target are allowed: http or https, with a host, without control characters."""
    return TRACKABLE.fullmatch(target) is not None


def _replaced(link: HtmlLink, url: str) -> str:
    """Return the HTML that replaces a link target."""
    escaped = entities.escape(url)
    return escaped if link.is_quoted else f'"{escaped}"'


def _pixel(url: str) -> str:
    """Return the tracking pixel; its form is that of docs/decisions/0206."""
    return f'<img src="{entities.escape(url)}" width="1" height="1" alt="" style="{PIXEL_STYLE}">'


def _cut(html: str, links: list[HtmlLink], footer_position: int) -> Slots:
    position = 0
    segments: list[tuple[str, HtmlLink | None]] = []
    for place in sorted([*links[:MAX_TRACKED_LINKS], None], key=lambda link: link.start if link else footer_position):
        start = place.start if place else footer_position
        segments.append((html[position:start], place))
        position = start + len(place.source) if place else start
    return Slots(tuple(segments), html[position:])


class Scanner:
    """Scans tags and comments; an unclosed construct ends the scan at its start."""

    def __init__(self, html: str) -> None:
        self.html = html
        # In order of position, and none after the first that is not tracked.
        self.links: list[HtmlLink] = []
        self._end = len(html)
        self._end_tags: dict[str, int] = {}
        self._foreign = 0
        self._templates: list[int] = []

    @property
    def footer_position(self) -> int:
        """Return the footer's position: before the last </body>, else </html>, else the end of the visible content."""
        end = self._templates[0] if self._templates else self._end
        return self._end_tags.get("/body", self._end_tags.get("/html", end))

    def scan(self, position: int, end: int) -> None:
        while token := self._next(position, end):
            position = self._after(token, end)
            if position < 0:
                self._end = token.start()
                return

    def _next(self, position: int, end: int) -> re.Match[str] | None:
        skipped = SKIPPED.match(self.html, position, end)
        return TOKEN.search(self.html, skipped.end() if skipped else position, end)

    def _after(self, token: re.Match[str], end: int) -> int:
        """Return the earliest start of the next token, -1 if this token is unclosed."""
        if token[1] is None:
            return self._after_markup(token.start(), end)
        if not token[3]:
            return -1
        name = token[1].lower()
        if name in RAW_TEXT_ELEMENTS and not (self._foreign and token[2].endswith("/")):
            closed = RAW_TEXT_ELEMENTS[name].search(self.html, token.end(), end)
            return closed.start() if closed else -1
        if name in LINKS and not self._templates and len(self.links) <= MAX_TRACKED_LINKS:
            self.links += self._links(token)
        self._track_nesting(name, token.start())
        return token.end()

    def _track_nesting(self, name: str, start: int) -> None:
        if name in {"/body", "/html"} and not self._templates:
            self._end_tags[name] = start
        elif name in FOREIGN:
            self._foreign += 1
        elif name[1:] in FOREIGN and self._foreign:
            self._foreign -= 1
        elif name == "template":
            self._templates.append(start)
        elif name == "/template" and self._templates:
            self._templates.pop()

    def _after_markup(self, start: int, end: int) -> int:
        if self.html.startswith("<!--", start):
            return self._after_comment(start, end)
        # Text within svg; elsewhere a comment that ends sooner. Copying it unchanged is correct in both cases.
        if self.html.startswith("<![CDATA[", start) and (closed := self.html.find("]]>", start, end)) >= 0:
            return closed + len("]]>")
        return self.html.find(">", start, end) + 1 or -1

    def _after_comment(self, start: int, end: int) -> int:
        for empty in ("<!-->", "<!--->"):
            if self.html.startswith(empty, start):
                return start + len(empty)
        closed = COMMENT_END.search(self.html, start + len("<!--"), end)
        if closed is None:
            return -1
        # Outlook shows the content of conditional comments. Comments do not nest.
        if condition := CONDITION.match(self.html, start, closed.start()):
            inner = Scanner(self.html)
            inner.scan(condition.end(), closed.start())
            self.links += inner.links
        return closed.end()

    def _links(self, token: re.Match[str]) -> list[HtmlLink]:
        """Return the trackable link of a tag, if any; of duplicate attributes the first counts."""
        href = HREF.match(token.string, token.start(2), token.end(2))
        if href is None or href.lastindex is None or self._is_untracked(token[2]):
            return []
        source = href[href.lastindex]
        target = _decode_target(source)
        return [HtmlLink(href.start(href.lastindex), source, target, is_quoted=href.lastindex < 3)] if target else []

    def _is_untracked(self, attributes: str) -> bool:
        lowered = attributes.lower()
        return UNTRACKED in lowered and any(name[1] == UNTRACKED for name in ATTRIBUTE.finditer(lowered))


def _decode_target(source: str) -> str | None:
    """Return the URL that a browser would follow, None if it is not trackable."""
    target = _decoded(source).strip(TRIMMED)
    if not target.isprintable():
        target = target.translate(DROPPED)
    # The target of a tracked link is the same for all recipients.
    if not is_trackable(target) or UNSUBSCRIBE_PLACEHOLDER in target:
        return None
    return target if len(target.encode()) <= MAX_TARGET_BYTES else None


def _decoded(source: str) -> str:
    # &amp; is the only reference in nearly all links; plain replacement is faster than a pattern.
    if source.count("&") == source.count("&amp;"):
        return source.replace("&amp;", "&")
    return REFERENCE.sub(_dereferenced, source)


def _dereferenced(reference: re.Match[str]) -> str:
    name = reference[1]
    return entities.unescape(reference[0]) if name.startswith("#") or name in html5 else reference[0]
