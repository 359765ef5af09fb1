"""Comparison of what readers find in a message: normal forms of each field, and equal ones."""

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tools.public_messages.readers import Found

FIELDS = ("subject", "sender", "to", "text", "html", "attachments", "names")
TAG = re.compile(
    r"<(?:style|script|title)\b.*?</(?:style|script|title)\s*>|<!--.*?-->|<[^>]*>", re.DOTALL | re.IGNORECASE
)
# Characters that one decoder replaces and another leaves out, and those that are not seen.
INVISIBLE = re.compile("[\ufffd\ufeff\u200b-\u200f\0-\x08\x0e-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Difference:
    """A field in which Postrider agrees with no other reader. others: what these find, by their names."""

    field: str
    ours: object
    others: Mapping[str, object]


def normal(found: Found, field: str) -> object:
    """Return a field without what readers show in different ways."""
    if field == "subject":
        return _words(found.subject)
    if field in {"sender", "to"}:
        addresses = found.sender if field == "sender" else found.to
        return [address.lower() for address in addresses if "@" in address]
    if field == "text":
        return _words(found.text)
    if field == "html":
        return _words(html.unescape(TAG.sub(" ", found.html)))
    if field == "attachments":
        return sorted(one.sha256 for one in found.attachments)
    return sorted(_name(one.name) for one in found.attachments if one.name)


def differences(ours: Found, others: Mapping[str, Found]) -> tuple[list[Difference], dict[str, set[str]]]:
    """Return the fields in which no other reader agrees, and those in which some agree, by reader that differs."""
    found: list[Difference] = []
    alone: dict[str, set[str]] = {}
    readable = {name: other for name, other in others.items() if not other.error}
    for field in FIELDS:
        if field == "text" and ours.is_text_generated:
            continue
        own = normal(ours, field)
        theirs = {name: normal(other, field) for name, other in readable.items()}
        differing = {name for name, value in theirs.items() if value != own}
        if len(differing) < len(theirs):
            alone.update({name: alone.get(name, set()) | {field} for name in differing})
        elif theirs:
            found.append(Difference(field, own, theirs))
    return found, alone


def _words(text: str) -> str:
    return " ".join(INVISIBLE.sub(" ", text).split())


def _name(name: str) -> str:
    return _words(name).replace("\\", "/").rpartition("/")[2]
