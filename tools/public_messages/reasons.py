"""Reasons for which Postrider reads a field in another way than all other readers."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tools.public_messages.comparison import Difference
from tools.public_messages.readers import Found
from tools.public_messages.samples import PublicMessage

FROM = re.compile(rb"^(?:From|To)[ \t]*:", re.IGNORECASE | re.MULTILINE)
LINE_OF_CR = re.compile(rb"\A[^\n]*?\r(?!\n)")
TEXTS = {"text", "html", "subject", "names"}
BOUNDS = ("more than", "nested deeper", "longer than", "too long")
REPAIRS = (
    "boundary", "no part", "empty line", "malformed", "misspelt", "padding", "base64", "skipped", "not a field",
    "subtype",
    "more than once",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A difference with what the rules look at."""

    sample: PublicMessage
    difference: Difference
    ours: Found
    others: Mapping[str, Found]

    @property
    def field(self) -> str:
        return self.difference.field

    @property
    def values(self) -> Iterator[object]:
        return iter(self.difference.others.values())


def reason_of(sample: PublicMessage, difference: Difference, ours: Found, others: Mapping[str, Found]) -> str:
    """Return the reason of a difference; empty for an unknown one."""
    case = Case(sample, difference, ours, others)
    return next((reason for reason, applies in RULES.items() if applies(case)), "")


def _has_bound(case: Case) -> bool:
    return any(bound in problem for problem in case.ours.problems for bound in BOUNDS)


def _has_other_characters(case: Case) -> bool:
    """Return whether another reader finds the same ASCII characters, or the source has bytes beyond it."""
    own = _ascii_of(case.difference.ours)
    if any(_ascii_of(value) == own for value in case.values):
        return True
    shares = map(_share_beyond_ascii, (case.difference.ours, *case.values))
    return case.field in TEXTS and max(shares) > 0.03


def _is_repaired(case: Case) -> bool:
    """Return whether Postrider repaired the message, and finds no less than the others.

    Python's email takes a header behind a line that is no field for text.
    """
    is_repaired = any(repair in problem for problem in case.ours.problems for repair in REPAIRS)
    values = [value for name, value in case.difference.others.items() if name != "python"]
    is_more = all(len(str(value)) <= len(str(case.difference.ours)) for value in values)
    return is_more and (is_repaired or b";;" in case.sample.source)


def _is_left_out(case: Case) -> bool:
    return any("left out" in problem for problem in case.ours.problems)


def _has_named_text(case: Case) -> bool:
    """Return whether a file of Postrider is a text of another reader: it has a name, and is no attachment."""
    sizes = [len(found.attachments) for found in case.others.values() if not found.error]
    return any(one.name for one in case.ours.attachments) and len(case.ours.attachments) > min(sizes, default=0)


def _has_messages(case: Case) -> bool:
    source = case.sample.source.lower()
    return case.field in {"attachments", "names", "text", "html"} and (
        b"message/" in source or b"multipart/digest" in source
    )


def _has_cr(case: Case) -> bool:
    return LINE_OF_CR.match(case.sample.source) is not None


def _is_repeated(case: Case) -> bool:
    return case.field in {"sender", "to"} and len(FROM.findall(case.sample.source)) > 2


def _is_cleaned(case: Case) -> bool:
    return case.field in {"sender", "to"} and any(
        str(address).strip(".`'*") in str(value) for address in _list(case.difference.ours) for value in case.values
    )


def _ascii_of(value: object) -> str:
    return "".join(character for character in str(value) if character.isascii() and character.isalnum())


def _share_beyond_ascii(value: object) -> float:
    text = str(value)
    return sum(not character.isascii() for character in text) / (len(text) or 1)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _has_no_comma(case: Case) -> bool:
    """Return whether others show the first of two addresses, and Postrider the last one."""
    return case.field in {"sender", "to"} and any(
        re.search(re.escape(f"{theirs} {own}"), case.sample.source.decode("latin-1"), re.IGNORECASE)
        for own in _list(case.difference.ours)
        for value in case.values
        for theirs in _list(value)
    )


def _has_path(case: Case) -> bool:
    return case.field == "names" and _ascii_of(case.difference.ours) != "" and b"\\" in case.sample.source


def _has_untyped_part(case: Case) -> bool:
    """Return whether a part has a header without a Content-Type, which mailparser and postal-mime take for a file."""
    return case.field == "attachments" and len(_list(case.difference.ours)) < min(map(len, map(_list, case.values)))


def _has_related_text(case: Case) -> bool:
    return b"multipart/related" in case.sample.source.lower()


# In this order: the first that applies.
RULES: Mapping[str, Callable[[Case], bool]] = {
    "a bound of Postrider": _has_bound,
    "lines that end with CR, which the others do not know": _has_cr,
    "other characters: a charset, or bytes without one": _has_other_characters,
    "a malformed message that the others do not read": _is_repaired,
    "a field that is repeated: others show the first or the last": _is_repeated,
    "an address without characters around it, such as a final dot": _is_cleaned,
    "an address, or text behind base64, that is in doubt is left out": _is_left_out,
    "a text with a file name is a file": _has_named_text,
    "attached messages are files with their exact bytes; others open or change them": _has_messages,
    "of two addresses without a comma between them, the last one": _has_no_comma,
    "the name of a file without its path": _has_path,
    "a part without a Content-Type is text": _has_untyped_part,
    "a further text of a multipart/related with a Content-ID is a file": _has_related_text,
}
