"""The links of many emails that differ only in their values, found once for all of them.

A template's HTML is the same texts every time, with values between them. Where nothing in a value is markup, and each
stands in a text or between quotes, no value moves a link: so the texts are scanned with a mark in each value's place.
Only a target that a value is part of is looked at for each email. What one gets is byte for byte what a scan of his
own HTML would make; where that is not certain, there is no pattern. See docs/decisions/0025.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from delivery.message.html import Grammar, Link, Scanner, Slots, target_of

# A noncharacter of Unicode: no text has a use for it.
MARK = "\ufdd0"
GRAMMAR = Grammar(mark=MARK)
# Where a value could make a tag of what is none, or end what is none of its own: right behind "<", "</tit" or
# "<!--", in front of a comment's end, and anywhere in CDATA.
DECISIVE = re.compile(rf"<[^\s<>]*{MARK}|{MARK}-{{0,2}}!?>|<!\[CDATA\[")
# A larger one costs more to keep than to scan.
LONGEST = 256 * 1024


@dataclass(frozen=True)
class TemplateSegments:
    """HTML in pieces. places: those that are values, in which "<", ">" and quotes are entities."""

    pieces: Sequence[str]
    places: Sequence[int]

    def pattern(self) -> Slots | None:
        """Return what it has in common with others, marks for values, if its links can be found by it."""
        marked = list(self.pieces)
        for place in self.places:
            marked[place] = MARK
        skeleton = "".join(marked)
        is_marked_by_us_alone = skeleton.count(MARK) == len(self.places)
        return pattern_of(skeleton) if is_marked_by_us_alone and len(skeleton) <= LONGEST else None

    def slots(self) -> Slots | None:
        """Return the slots of this HTML, if they can be found by its pattern."""
        pattern = self.pattern()
        if pattern is None:
            return None
        values = iter([self.pieces[place] for place in self.places])
        cuts = tuple((_with_values(text, values), link and _link(link, values)) for text, link in pattern.cuts)
        return Slots(cuts, _with_values(pattern.rest, values))


@functools.lru_cache(maxsize=64)
def pattern_of(skeleton: str) -> Slots | None:
    """Return the slots of a text with marks; None where a value may change what the text around it means."""
    if DECISIVE.search(skeleton):
        return None
    scanner = Scanner(skeleton, GRAMMAR)
    slots = scanner.slots()
    return slots if scanner.has_read_marks else None


def _with_values(text: str, values: Iterator[str]) -> str:
    """Put the next values in the places of the text's marks."""
    first, *others = text.split(MARK)
    return first + "".join([next(values) + other for other in others]) if others else text


def _link(link: Link, values: Iterator[str]) -> Link:
    """Return the link as it is written now; it has no target when it cannot be tracked."""
    if MARK not in link.written:
        return link
    written = _with_values(link.written, values)
    return replace(link, written=written, target=target_of(written) or "")
