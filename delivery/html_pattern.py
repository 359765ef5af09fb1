"""The links of many emails that differ only in their values, found once for all of them.

A template's HTML is the same texts every time, with values between them. Where nothing in a value is markup, and each
stands in a text or between quotes, no value moves a link: so the texts are scanned with a mark in each value's place.
Only a target that a value is part of is looked at for each email. What one gets is byte for byte what a scan of his
own HTML would make; where that is not certain, there is no pattern. See docs/decisions/0025.
"""

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from delivery.html import Grammar, Link, Scanner, footer_and_pixel, replaced, target_of

# A noncharacter of Unicode: no text has a use for it.
MARK = "\ufdd0"
GRAMMAR = Grammar(mark=MARK)
# Where a value could make a tag of what is none, or end what is none of its own: right behind "<", "</tit" or
# "<!--", in front of a comment's end, and anywhere in CDATA.
DECISIVE = re.compile(rf"<[^\s<>]*{MARK}|{MARK}-{{0,2}}!?>|<!\[CDATA\[")
# A larger one costs more to keep than to scan.
LONGEST = 256 * 1024


@dataclass(frozen=True)
class Woven:
    """HTML in pieces. places: those that are values, in which "<", ">" and quotes are entities."""

    pieces: Sequence[str]
    places: Sequence[int]

    def pattern(self) -> "Pattern | None":
        """Return what it has in common with others, if its links can be found by it."""
        marked = list(self.pieces)
        for place in self.places:
            marked[place] = MARK
        skeleton = "".join(marked)
        is_marked_by_us_alone = skeleton.count(MARK) == len(self.places)
        return pattern_of(skeleton) if is_marked_by_us_alone and len(skeleton) <= LONGEST else None

    def fill(self, pattern: "Pattern", *, link: Callable[[str], str] | None, pixel_url: str | None, footer: str) -> str:
        """Return the HTML for one recipient; see delivery.html.fill."""
        values = [self.pieces[place] for place in self.places]
        return pattern.fill(values, link=link, added=footer_and_pixel(footer, pixel_url))


@dataclass(frozen=True)
class _OpenLink:
    """A link of which the values from `first` to `last` are a part."""

    link: Link
    first: int
    last: int

    def with_values(self, values: Sequence[str]) -> Link:
        """Return the link as it is written now; it has no target when it cannot be tracked."""
        texts = self.link.written.split(MARK)
        written = texts[0] + "".join(
            value + text for value, text in zip(values[self.first : self.last], texts[1:], strict=True)
        )
        return replace(self.link, written=written, target=target_of(written) or "")


@dataclass(frozen=True)
class Pattern:
    """Texts, with gaps between them for values, links, and what comes behind everything else.

    values: the gap of a value and its number. Gaps are places in `texts`.
    """

    texts: tuple[str, ...]
    values: tuple[tuple[int, int], ...]
    links: tuple[tuple[int, Link], ...]
    open_links: tuple[tuple[int, _OpenLink], ...]
    closing: int

    def fill(self, values: Sequence[str], *, link: Callable[[str], str] | None, added: str) -> str:
        texts = list(self.texts)
        for gap, number in self.values:
            texts[gap] = values[number]
        for gap, found in self.links:
            texts[gap] = replaced(found, link(found.target)) if link else found.written
        for gap, open_link in self.open_links:
            now = open_link.with_values(values)
            texts[gap] = replaced(now, link(now.target)) if link and now.target else now.written
        texts[self.closing] = added
        return "".join(texts)


@functools.lru_cache(maxsize=64)
def pattern_of(skeleton: str) -> Pattern | None:
    """Return the pattern of a text with marks; None where a value may change what the text around it means."""
    if DECISIVE.search(skeleton):
        return None
    scanner = Scanner(skeleton, GRAMMAR)
    slots = scanner.slots()
    if not scanner.has_read_marks:
        return None
    weaver = _Weaver()
    for text, link in slots.cuts:
        weaver.add_text(text)
        weaver.add_link(link)
    weaver.add_text(slots.rest)
    return weaver.pattern()


class _Weaver:
    """Puts a pattern together."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._values: list[tuple[int, int]] = []
        self._links: list[tuple[int, Link]] = []
        self._open_links: list[tuple[int, _OpenLink]] = []
        self._closing = 0
        self._seen = 0

    def add_text(self, text: str) -> None:
        first, *others = text.split(MARK)
        self._texts.append(first)
        for other in others:
            self._values.append((self._gap(), self._seen))
            self._seen += 1
            self._texts.append(other)

    def add_link(self, link: Link | None) -> None:
        gap = self._gap()
        if link is None:
            self._closing = gap
        elif MARK in link.written:
            first = self._seen
            self._seen += link.written.count(MARK)
            self._open_links.append((gap, _OpenLink(link, first, self._seen)))
        else:
            self._links.append((gap, link))

    def pattern(self) -> Pattern:
        return Pattern(
            tuple(self._texts), tuple(self._values), tuple(self._links), tuple(self._open_links), self._closing
        )

    def _gap(self) -> int:
        self._texts.append("")
        return len(self._texts) - 1
