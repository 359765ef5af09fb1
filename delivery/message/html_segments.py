"""Template segments: the links of all emails of a template, found once.

A template's HTML consists of fixed texts with values between them. If no value contains markup, and each is in a text
or within quotes, the values do not change where links are: the texts are scanned once with a placeholder for each
value. Only targets that contain a value are decoded for each email. The result equals a scan of the email's HTML byte
for byte; where that is not certain, there are no template slots. See docs/decisions/0025.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from delivery.message.html import MAX_TRACKED_LINKS, Grammar, HtmlLink, Scanner, Slots, decode_target

# A Unicode noncharacter, which does not occur in text.
PLACEHOLDER = "\ufdd0"
GRAMMAR = Grammar(placeholder=PLACEHOLDER)
# Positions where a value could create a tag or end a construct: right after "<", "</tit" or "<!--", before the end
# of a comment, and anywhere in CDATA.
UNSAFE_PLACEHOLDER = re.compile(rf"<[^\s<>]*{PLACEHOLDER}|{PLACEHOLDER}-{{0,2}}!?>|<!\[CDATA\[")
# Caching a longer skeleton costs more than scanning it.
MAX_LENGTH = 256 * 1024


@dataclass(frozen=True)
class TemplateSegments:
    """Rendered HTML in segments. value_indexes: those that are values, with "<", ">" and quotes escaped."""

    segments: Sequence[str]
    value_indexes: Sequence[int]

    def template_slots(self) -> Slots | None:
        """Return the template's slots, with placeholders for values, or None if a value could change them."""
        fixed = list(self.segments)
        for index in self.value_indexes:
            fixed[index] = PLACEHOLDER
        skeleton = "".join(fixed)
        is_unambiguous = skeleton.count(PLACEHOLDER) == len(self.value_indexes)
        return slots_of_skeleton(skeleton) if is_unambiguous and len(skeleton) <= MAX_LENGTH else None

    def slots(self) -> Slots | None:
        """Return the slots of this HTML, or None if the template has none."""
        template_slots = self.template_slots()
        if template_slots is None:
            return None
        values = iter([self.segments[index] for index in self.value_indexes])
        segments = tuple(
            (_with_values(text, values), link and _link(link, values)) for text, link in template_slots.segments
        )
        return Slots(segments, _with_values(template_slots.tail, values))


@functools.lru_cache(maxsize=64)
def slots_of_skeleton(skeleton: str) -> Slots | None:
    """Return the slots of HTML with placeholders, or None if a value could change the meaning of the HTML.

    Also None above MAX_TRACKED_LINKS, where the values decide which links are the first trackable ones.
    """
    if UNSAFE_PLACEHOLDER.search(skeleton):
        return None
    scanner = Scanner(skeleton, GRAMMAR)
    slots = scanner.slots()
    return slots if scanner.are_placeholders_safe and len(scanner.links) <= MAX_TRACKED_LINKS else None


def _with_values(text: str, values: Iterator[str]) -> str:
    """Replace the placeholders of a text with the next values."""
    first, *others = text.split(PLACEHOLDER)
    return first + "".join([next(values) + other for other in others]) if others else text


def _link(link: HtmlLink, values: Iterator[str]) -> HtmlLink:
    """Return the link with its values filled in; its target is "" if it is not trackable."""
    if PLACEHOLDER not in link.source:
        return link
    source = _with_values(link.source, values)
    return replace(link, source=source, target=decode_target(source) or "")
