"""The text part of an email that was given as HTML alone.

Tags are read one after the other, without a tree: the tree of what a hostile page leaves open has many times
the page's size (18 kB became 370 MB). The patterns match wherever one of their tokens begins, to the end of the
page if need be, so that nothing is read twice.
"""

import html as entities
import re
from collections.abc import Iterator

# A value in quotes may hold a ">"; what is not closed reaches to the end.
ATTRIBUTES = r"""(?:[^>=]+|=+\s*(?:"[^"]*"?|'[^']*'?)?)*"""
ATTRIBUTE = re.compile(r"""([^\s/>=]+)(?:\s*=\s*(?:"([^"]*)"?|'([^']*)'?|([^\s>]*)))?""")
# Elements whose content is not text, or not seen.
UNSEEN = "style|script|title|template|iframe|noembed|noframes|xmp"
TOKEN = re.compile(
    rf"""<(?:
        !--(?:-?>|.*?--!?>|.*)
        |((?i:{UNSEEN}))(?=[\s/>]){ATTRIBUTES}(?:>(?:.*?</(?i:\1)(?=[\s/>])[^>]*>?|.*)|\Z)
        |(/?[a-zA-Z][^\s/>]*)({ATTRIBUTES})(?:>|\Z)
        |[!?/][^>]*>?
    )""",
    re.VERBOSE | re.DOTALL,
)
PARTS_OF_TOKEN = 4
TARGET = re.compile(r"https?://|mailto:", re.IGNORECASE)
# A URL goes on behind them (WHATWG URL, section 4.4).
URL_LINE_ENDS = dict.fromkeys(map(ord, "\t\r\n"))
# The standard library fails on a character reference of thousands of digits.
ENDLESS_REFERENCE = re.compile(r"&#(?:[0-9]{9,}|[xX][0-9a-fA-F]{9,});?")
# "&copy=1" is part of a query, not a sign: in attributes the semicolon decides.
ATTRIBUTE_REFERENCE = re.compile(r"&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,8}|[A-Za-z][A-Za-z0-9]{1,40});")
# Preheaders are filled up with these, so that the mail program shows nothing else beside them.
FILLING = " \u00ad\u034f\u061c\u200b\u200c\u200d\u2060\ufeff"

LINES = (
    "address article center dd details div dl dt figure footer form header hr li main nav ol option pre section tr ul"
)
PARAGRAPHS = "blockquote h1 h2 h3 h4 h5 h6 p table"
# How many line ends stand at least before and after an element.
BREAKS = {
    prefix + name: breaks
    for names, breaks in ((LINES, 1), (PARAGRAPHS, 2))
    for name in names.split()
    for prefix in ("", "/")
}


def text_of_html(html: str) -> str:
    """Return the visible text, a line for each block, with the targets of links behind them."""
    return _tidy("".join(_Reading(html).pieces))


DASH = "- "
MOST_BREAKS = max(BREAKS.values())


class _Reading:
    """What was read of a page: pieces of text, the line ends behind the last one, the link that is open."""

    def __init__(self, html: str) -> None:
        self.pieces: list[str] = []
        self._breaks = MOST_BREAKS
        self._target = ""
        self._link_begins = 0
        self._newline = " "
        self._acts = {
            "a": self._begin_link,
            "/a": self._end_link,
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
        # Blanks between blocks begin no line.
        if not (self._breaks and seen.isspace()):
            self.pieces.append(seen)
            self._breaks = 0

    def _add_tag(self, name: str, attributes: str) -> None:
        missing = BREAKS.get(name, 0) - self._breaks
        if missing > 0:
            self.pieces.append("\n" * missing)
            self._breaks += missing
        if name in self._acts:
            self._acts[name](attributes)

    def _begin_link(self, attributes: str) -> None:
        self._end_link()
        target = _attribute(attributes, "href").translate(URL_LINE_ENDS)
        self._target = target if TARGET.match(target) else ""
        self._link_begins = len(self.pieces)

    def _end_link(self, attributes: str = "") -> None:
        # A link that shows its own target needs no second one.
        if self._target and self._target not in "".join(self.pieces[self._link_begins :]):
            self.pieces.append(f" ({self._target})")
        self._target = ""

    def _add_image(self, attributes: str) -> None:
        if text := _attribute(attributes, "alt"):
            self._add_text(text)

    def _break_line(self, attributes: str) -> None:
        self.pieces.append("\n")
        self._breaks += 1

    def _begin_item(self, attributes: str) -> None:
        # An item without a text says nothing; a paragraph inside stands behind the dash.
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
    """Return the value of the first attribute of that name, or nothing."""
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
        yield " ".join(line.split()).strip(FILLING)
