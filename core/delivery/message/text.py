"""Text part of an email that has only HTML (docs/decisions/0019).

Tags are read in sequence, without a tree: the tree of a hostile page with unclosed tags has many times the page's size
(18 kB became 370 MB). Every token matches from its start, to the end of the page if unclosed, so that no byte is read
twice.
"""

import functools
import html as entities
import itertools
import re
from collections.abc import Iterator

from core.delivery.message.footer import UNSUBSCRIBE_PLACEHOLDER

# A quoted value may contain ">"; an unclosed quote extends to the end.
ATTRIBUTES = r"""(?:[^>=]+|=+\s*(?:"[^"]*"?|'[^']*'?)?)*"""
ATTRIBUTE = re.compile(r"""([^\s/>=]+)(?:\s*=\s*(?:"([^"]*)"?|'([^']*)'?|([^\s>]*)))?""")
# Elements whose content is not text or not visible.
HIDDEN_ELEMENTS = "style|script|title|template|iframe|noembed|noframes|xmp"
TOKEN = re.compile(
    rf"""<(?:
        !--(?:-?>|.*?--!?>|.*)
        |((?i:{HIDDEN_ELEMENTS}))(?=[\s/>]){ATTRIBUTES}(?:>(?:.*?</(?i:\1)(?=[\s/>])[^>]*>?|.*)|\Z)
        |(/?[a-zA-Z][^\s/>]*)({ATTRIBUTES})(?:>|\Z)
        |[!?/][^>]*>?
    )""",
    re.VERBOSE | re.DOTALL,
)
PARTS_OF_TOKEN = 4
TARGET = re.compile(rf"https?://|mailto:|{UNSUBSCRIBE_PLACEHOLDER}", re.IGNORECASE)
# Characters dropped from within a URL (WHATWG URL, section 4.4).
URL_LINE_ENDS = dict.fromkeys(map(ord, "\t\r\n"))
# The standard library fails on character references with thousands of digits.
ENDLESS_REFERENCE = re.compile(r"&#(?:[0-9]{9,}|[xX][0-9a-fA-F]{9,});?")
# "&copy=1" is part of a query, not a character reference: in attributes only the semicolon makes one.
ATTRIBUTE_REFERENCE = re.compile(r"&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,8}|[A-Za-z][A-Za-z0-9]{1,40});")
# Preheaders are padded with these characters to keep other text out of the mail program's preview.
PADDING = " \u00ad\u034f\u061c\u200b\u200c\u200d\u2060\ufeff"

LINES = (
    "address article center dd details div dl dt figure footer form header hr li main nav ol option pre section tr ul"
)
PARAGRAPHS = "blockquote h1 h2 h3 h4 h5 h6 p table"
# Minimum number of line ends before and after an element.
BREAKS = {
    prefix + name: breaks
    for names, breaks in ((LINES, 1), (PARAGRAPHS, 2))
    for name in names.split()
    for prefix in ("", "/")
}


@functools.lru_cache(maxsize=8)
def html_to_text(html: str) -> str:
    """Return the visible text, one line per block, with each link's target after its text."""
    return _tidy("".join(_TextExtractor(html).pieces))


def visible_length(html: str, *, at_most: int) -> int:
    """Return the number of visible characters without white space; reading ends once there are at_most."""
    start = length = 0
    for token in itertools.chain(TOKEN.finditer(html), [None]):
        end = token.start() if token else len(html)
        length += len("".join(_unescaped(html[start:end]).split()))
        if token is None or length >= at_most:
            break
        start = token.end()
    return min(length, at_most)


DASH = "- "
MOST_BREAKS = max(BREAKS.values())


class _TextExtractor:
    """Collects the text of a page: its pieces, the line ends after the last piece, and the open link."""

    def __init__(self, html: str) -> None:
        self.pieces: list[str] = []
        self._breaks = MOST_BREAKS
        self._target = ""
        self._link_begins = 0
        self._newline = " "
        self._handlers = {
            "a": self._begin_link,
            "/a": self._end_link,
            "area": self._add_area,
            "img": self._add_image,
            "br": self._break_line,
            "li": self._begin_item,
            "/td": self._end_cell,
            "/th": self._end_cell,
            "pre": self._begin_preformatted,
            "/pre": self._end_preformatted,
        }
        self._read(TOKEN.split(html))
        self._end_link()

    def _read(self, parts: list[str]) -> None:
        texts, names, attributes = (parts[at::PARTS_OF_TOKEN] for at in (0, 2, 3))
        for text, name, raw in zip(texts, [*names, ""], [*attributes, ""], strict=True):
            if text:
                self._add_text(text)
            if name:
                self._add_tag(name.lower(), raw)

    def _add_text(self, text: str) -> None:
        seen = _unescaped(text.replace("\n", self._newline))
        # White space between blocks starts no line.
        if not (self._breaks and seen.isspace()):
            self.pieces.append(seen)
            self._breaks = 0

    def _add_tag(self, name: str, attributes: str) -> None:
        missing = BREAKS.get(name, 0) - self._breaks
        if missing > 0:
            self.pieces.append("\n" * missing)
            self._breaks += missing
        if name in self._handlers:
            self._handlers[name](attributes)

    def _begin_link(self, attributes: str) -> None:
        self._end_link()
        target = _attribute(attributes, "href").translate(URL_LINE_ENDS)
        self._target = target if TARGET.match(target) else ""
        self._link_begins = len(self.pieces)

    def _end_link(self, attributes: str = "") -> None:
        # A link whose text contains the target needs no second copy.
        if self._target and self._target not in "".join(self.pieces[self._link_begins :]):
            self.pieces.append(f" ({self._target})")
        self._target = ""

    def _add_area(self, attributes: str) -> None:
        self._begin_link(attributes)
        self._add_image(attributes)
        self._end_link()

    def _add_image(self, attributes: str) -> None:
        if text := _attribute(attributes, "alt"):
            self._add_text(text)

    def _break_line(self, attributes: str) -> None:
        self.pieces.append("\n")
        self._breaks += 1

    def _begin_item(self, attributes: str) -> None:
        # An empty item gets no second dash; a paragraph in an item follows the dash on its line.
        if not self.pieces or self.pieces[-1] != DASH:
            self.pieces.append(DASH)
        self._breaks = MOST_BREAKS

    def _end_cell(self, attributes: str) -> None:
        if not self._breaks:
            self.pieces.append(" ")

    def _begin_preformatted(self, attributes: str) -> None:
        self._newline = "\n"

    def _end_preformatted(self, attributes: str) -> None:
        self._newline = " "


def _attribute(attributes: str, wanted: str) -> str:
    """Return the value of the first attribute with that name, or an empty string."""
    for name, *values in ATTRIBUTE.findall(attributes):
        if name.lower() == wanted:
            return ATTRIBUTE_REFERENCE.sub(lambda reference: entities.unescape(reference[0]), "".join(values)).strip()
    return ""


def _unescaped(text: str) -> str:
    if "&" not in text:
        return text
    return entities.unescape(ENDLESS_REFERENCE.sub("\ufffd", text))


def _tidy(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(_lines(text))).strip() + "\n"


def _lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield " ".join(line.split()).strip(PADDING)
