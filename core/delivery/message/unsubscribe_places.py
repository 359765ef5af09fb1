"""Places of the unsubscribe link: the placeholder in HTML and text, in each spelling that editors give it.

Editors put `http://` before a placeholder, resolve it like a relative URL, and escape its percent signs. The time is
linear in the length of the text. See docs/decisions/0190.
"""

import functools
import itertools
import re
from collections.abc import Iterator
from html.entities import html5

from core.delivery.message.footer import MAX_UNSUBSCRIBE_LINKS, UNSUBSCRIBE_PLACEHOLDER
from core.delivery.message.text import html_to_text

NAME = UNSUBSCRIBE_PLACEHOLDER.strip("%")
# White space in any spelling, at most so much of it.
BLANKS = r"(?:\s|%(?:25){0,2}20|&nbsp;|&#0{0,3}(?:32|160);){0,20}"
# The longest base of a URL before a placeholder.
MAX_BASE = 2000
URL_LIMIT = re.compile(r"[\s\"'<>]")
URL_START = re.compile(r"https?:|mailto:|//", re.IGNORECASE)
QUERY = re.compile("[?#]")
HREF = "href="
QUOTED_HREF = re.compile(r"href\s{0,9}=\s{0,9}[\"']\Z", re.IGNORECASE)
QUOTED_HREF_LENGTH = 24


def any_spelling(text: str) -> str:
    """Return a pattern of a text whose punctuation may be percent-encoded or written as character references."""
    return "".join(map(_any_spelling_of, text))


@functools.cache
def _any_spelling_of(character: str) -> str:
    if character.isalnum() or character in "_-":
        return re.escape(character)
    code = ord(character)
    names = "|".join(name.rstrip(";") for name, text in html5.items() if text == character and name.endswith(";"))
    references = f"#0{{0,6}}{code}|#x0{{0,6}}{code:x}" + (f"|{names}" if names else "")
    # A percent sign is percent-encoded as %25, which may be encoded again.
    encoded = "%(?:25){0,3}" if character == "%" else rf"{re.escape(character)}|%(?:25){{0,2}}{code:02x}"
    return rf"(?i:{encoded}|&(?:{references});)"


PLACE = re.compile(any_spelling(UNSUBSCRIBE_PLACEHOLDER))
# The beginning and the end of a template tag, `{{ … }}` or `{{{ … }}}`.
TAG_START = rf"{any_spelling('{{')}{any_spelling('{')}?{BLANKS}"
TAG_END = rf"{BLANKS}{any_spelling('}')}?{any_spelling('}}')}"


def has_placeholder(text: str) -> bool:
    """Return whether a text has the placeholder in any spelling, also where nobody sees it."""
    return NAME in text and PLACE.search(text) is not None


def with_plain_places(text: str) -> str:
    """Return HTML or text in which each placeholder is spelled plainly, without the base of a URL before it.

    As a parameter of another URL the placeholder stays there: `https://shop.example/bye?link=%unsubscribe_url%`.
    """
    if NAME not in text:
        return text
    pieces: list[str] = []
    position = 0
    for place in itertools.islice(PLACE.finditer(text), MAX_UNSUBSCRIBE_LINKS):
        pieces += text[position : _base_start(text, position, place.start())], UNSUBSCRIBE_PLACEHOLDER
        # Programs that resolve URLs add a slash after the host.
        position = place.end() + text.startswith("/", place.end())
    return "".join([*pieces, text[position:]])


def has_link(text: str) -> bool:
    """Return whether a text with plain places has the link where a recipient can follow it."""
    return any(URL_START.search(_url_before(text, 0, start)) is None for start in _starts(text))


@functools.lru_cache(maxsize=8)
def read_html(html: str) -> tuple[str, bool]:
    """Return HTML with plain places, and whether one of them is the target of a link or visible text."""
    plain = with_plain_places(html)
    return plain, UNSUBSCRIBE_PLACEHOLDER in plain and has_link(html_to_text(plain))


def _starts(text: str) -> Iterator[int]:
    places = re.finditer(UNSUBSCRIBE_PLACEHOLDER, text)
    return (place.start() for place in itertools.islice(places, MAX_UNSUBSCRIBE_LINKS))


def _base_start(text: str, low: int, start: int) -> int:
    """Return where the base of a URL begins that ends at `start`, or `start`. low: the end of the place before."""
    url = _url_before(text, low, start)
    before = text[max(low, start - len(url) - QUOTED_HREF_LENGTH) : start - len(url)]
    if found := URL_START.search(url):
        base = url[found.start() :]
    elif url.lower().startswith(HREF):
        base = url[len(HREF) :]
    else:
        base = url if QUOTED_HREF.search(before) else ""
    return start if QUERY.search(base) else start - len(base)


def _url_before(text: str, low: int, end: int) -> str:
    """Return the characters before a position that could be the start of its URL."""
    return URL_LIMIT.split(text[max(low, end - MAX_BASE) : end])[-1]
