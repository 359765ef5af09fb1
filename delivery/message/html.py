"""Find the links of an email's HTML once, and fill in each recipient's own: pure, linear, byte for byte.

A scanner, not a parser: what is not a link's target or the place of the footer is handed on as it is. It
reads tags as HTML's tokenizer does (https://html.spec.whatwg.org/multipage/parsing.html, section 13.2.5).
What is never closed ends the scan, and no pattern ever goes back: linear on hostile input, too.
See docs/decisions/0025.
"""

import html as entities
import re
from collections.abc import Callable
from dataclasses import dataclass
from html.entities import html5

# Longer links stay as they are: what is made of one must fit the 2,083 characters that mail readers on Windows open.
LONGEST_TARGET_BYTES = 1400

# Elements whose content is text, whatever it looks like. Mail readers run no scripts: <noscript> is not one of them.
RAW = {
    name: re.compile(rf"</{name}[\t\n\f\r />]", re.IGNORECASE)
    for name in ("style", "script", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "plaintext")
}
FOREIGN = frozenset({"svg", "math"})
LINKS = frozenset({"a", "area"})
UNTRACKED = "data-no-track"
# The tags that say something about what follows; the others are passed over.
TELLING = ("area", "/body", "/html", *RAW, "template", "/template", "svg", "/svg", "math", "/math")

_SPACE = r"[\t\n\f\r ]"
_IS = rf"{_SPACE}*+={_SPACE}*+"
_HREF = r"[hH][rR][eE][fF](?=[\t\n\f\r />=]|\Z)"
_TELLING = "|".join("".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in name) for name in TELLING)


def _many(turns: str) -> str:
    """Repeat what is tried, and never go back into it.

    Not by a possessive repetition, in which Python before 3.11.5 goes astray (cpython issue 106052). In thousands,
    for every turn takes some 500 bytes of memory until its group is left.
    """
    return rf"(?>(?>(?:{turns}){{1,1000}})*)"


class Grammar:
    """The patterns of tags.

    mark: a character that stands for what is not known yet; it may occur in texts and between quotes, nowhere else.
    """

    def __init__(self, *, mark: str = "") -> None:
        self.mark = mark
        no = rf"[^\t\n\f\r {mark}"
        tag = rf"[A-Za-z]{no}/>]*+"
        name = rf"{no}/>]{no}/>=]*+"
        # Between double quotes, between single quotes, and without: a quote that is never closed runs to the end.
        value = rf"(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|{no}\"'>]{no}>]*+)"
        attribute = rf"{name}(?:{_IS}{value}?)?"
        # The first alternative is the common case of the third, and saves a third of the time.
        attributes = _many(rf" [a-z-]++=\"[^\"]*+\"|[\t\n\f\r /]++|{attribute}")
        dull = rf"(?![aA][\t\n\f\r /]|(?:{_TELLING})[\t\n\f\r />])/?{tag}"
        # Text and tags that tell nothing.
        self.dull = re.compile(rf"(?:[^<]*+<{dull}{attributes}>){{0,1000}}")
        self.token = re.compile(rf"<(?:(/?{tag})({attributes})(>?)|[!?/])")
        self.href = re.compile(
            _many(rf"[\t\n\f\r /]++|(?!{_HREF}){attribute}")
            + rf"{_HREF}{_IS}(?:\"([^\"]*+)\"|'([^']*+)'|({no}\"'>]{no}>]*+))"
        )
        self.attribute = re.compile(rf"({name})(?:{_IS}{value}?)?")


HTML = Grammar()
COMMENT_END = re.compile(r"--!?>")
CONDITION = re.compile(r"<!--\[if [^>]*>", re.IGNORECASE)

# As in an attribute: `&copy=1` and `&section` are parts of a query, not signs.
REFERENCE = re.compile(r"&(#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z][A-Za-z0-9]*+(?:;|(?!=)))")
# Browsers trim these from a URL, and drop those from within it.
TRIMMED = "".join(map(chr, range(0x21)))
DROPPED = {ord(character): None for character in "\t\n\r"}
TRACKABLE = re.compile(r"https?://[^\x00-\x20\x7f/?#\\][^\x00-\x1f\x7f\\]*", re.IGNORECASE)


@dataclass(frozen=True)
class Link:
    """A target: where it stands, how it is written there, and what that means, nothing for what is not tracked."""

    start: int
    written: str
    target: str
    is_quoted: bool


@dataclass(frozen=True)
class Slots:
    """A content in pieces; behind each text is a link, or None for the place of footer and pixel."""

    cuts: tuple[tuple[str, Link | None], ...]
    rest: str

    @property
    def targets(self) -> list[str]:
        return [link.target for _, link in self.cuts if link]


def find_slots(html: str) -> Slots:
    """Find what can be tracked and where the footer goes; once per content, for any number of recipients."""
    return Scanner(html, HTML).slots()


def fill(slots: Slots, *, link: Callable[[str], str] | None, pixel_url: str | None, footer: str) -> str:
    """Return the HTML for one recipient.

    link: gives the URL that stands in for a target; None leaves the links as they are.
    footer: HTML, already escaped; the pixel follows it.
    """
    added = _footer_and_pixel(footer, pixel_url)
    parts: list[str] = []
    for text, found in slots.cuts:
        parts.append(text)
        if found is None:
            parts.append(added)
        else:
            parts.append(_replaced(found, link(found.target)) if link and found.target else found.written)
    parts.append(slots.rest)
    return "".join(parts)


def is_trackable(target: str) -> bool:
    """Tell whether a target may be redirected to: http or https, with a host and without control characters."""
    return TRACKABLE.fullmatch(target) is not None


def _replaced(link: Link, url: str) -> str:
    """Return what is written in the place of a link."""
    escaped = entities.escape(url)
    return escaped if link.is_quoted else f'"{escaped}"'


def _footer_and_pixel(footer: str, pixel_url: str | None) -> str:
    """Return what is written behind everything else that is shown."""
    style = "display:block;width:1px;height:1px;border:0"
    if not pixel_url:
        return footer
    return f'{footer}<img src="{entities.escape(pixel_url)}" width="1" height="1" alt="" style="{style}">'


def _cut(html: str, links: list[Link], closing: int) -> Slots:
    position = 0
    cuts: list[tuple[str, Link | None]] = []
    for place in sorted([*links, None], key=lambda link: link.start if link else closing):
        start = place.start if place else closing
        cuts.append((html[position:start], place))
        position = start + len(place.written) if place else start
    return Slots(tuple(cuts), html[position:])


class Scanner:
    """Walks over tags and comments; what is never closed ends the walk where it opened."""

    def __init__(self, html: str, grammar: Grammar) -> None:
        self.html = html
        self.links: list[Link] = []
        # Whether no mark stands where it could decide how what follows is read.
        self.has_read_marks = True
        self._grammar = grammar
        self._end = len(html)
        self._closing: dict[str, int] = {}
        self._foreign = 0
        self._templates: list[int] = []

    @property
    def closing(self) -> int:
        """Where the footer goes: before the last </body>, else </html>, else at the end of what is shown."""
        end = self._templates[0] if self._templates else self._end
        return self._closing.get("/body", self._closing.get("/html", end))

    def slots(self) -> Slots:
        """Scan all of it."""
        self.scan(0, len(self.html))
        return _cut(self.html, self.links, self.closing)

    def scan(self, position: int, end: int) -> None:
        while token := self._next(position, end):
            position = self._after(token, end)
            if position < 0:
                self._end = token.start()
                self.has_read_marks = self.html.find(self._grammar.mark, self._end, end) < 0
                return

    def _next(self, position: int, end: int) -> re.Match[str] | None:
        dull = self._grammar.dull.match(self.html, position, end)
        return self._grammar.token.search(self.html, dull.end() if dull else position, end)

    def _after(self, token: re.Match[str], end: int) -> int:
        """Return where the next token may begin, -1 when this one is never closed."""
        if token[1] is None:
            return self._after_markup(token.start(), end)
        if not token[3]:
            return -1
        name = token[1].lower()
        if name in RAW and not (self._foreign and token[2].endswith("/")):
            closed = RAW[name].search(self.html, token.end(), end)
            return closed.start() if closed else -1
        if name in LINKS and not self._templates:
            self.links += self._links(token)
        self._note(name, token.start())
        return token.end()

    def _note(self, name: str, start: int) -> None:
        if name in {"/body", "/html"} and not self._templates:
            self._closing[name] = start
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
        # Text within svg, elsewhere a comment that ends sooner; what is left alone is right in both.
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
        # Outlook shows what stands in a conditional comment. No comment can stand in a comment.
        if condition := CONDITION.match(self.html, start, closed.start()):
            inner = Scanner(self.html, self._grammar)
            inner.scan(condition.end(), closed.start())
            self.links += inner.links
            self.has_read_marks = self.has_read_marks and inner.has_read_marks
        return closed.end()

    def _links(self, token: re.Match[str]) -> list[Link]:
        """Return the link of a tag, if it has one to track; of two attributes of one name the first counts."""
        href = self._grammar.href.match(token.string, token.start(2), token.end(2))
        if href is None or href.lastindex is None or self._is_untracked(token[2]):
            return []
        written = href[href.lastindex]
        mark = self._grammar.mark
        target = written if mark and mark in written else target_of(written)
        return [Link(href.start(href.lastindex), written, target, is_quoted=href.lastindex < 3)] if target else []

    def _is_untracked(self, attributes: str) -> bool:
        lowered = attributes.lower()
        return UNTRACKED in lowered and any(name[1] == UNTRACKED for name in self._grammar.attribute.finditer(lowered))


def target_of(written: str) -> str | None:
    """Return what a browser would make of a target, None for what is not tracked."""
    target = _decoded(written).strip(TRIMMED)
    if not target.isprintable():
        target = target.translate(DROPPED)
    return target if is_trackable(target) and len(target.encode()) <= LONGEST_TARGET_BYTES else None


def _decoded(written: str) -> str:
    # The one reference that nearly all links have is not worth a pattern.
    if written.count("&") == written.count("&amp;"):
        return written.replace("&amp;", "&")
    return REFERENCE.sub(_dereferenced, written)


def _dereferenced(reference: re.Match[str]) -> str:
    name = reference[1]
    return entities.unescape(reference[0]) if name.startswith("#") or name in html5 else reference[0]
