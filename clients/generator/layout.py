"""Source text: lines of at most 120 characters, laid out as the formatters of both languages do."""

import textwrap
from collections.abc import Sequence

WIDTH = 120


def paragraph(text: str, *, indent: int, prefix: str = "", width: int = WIDTH) -> list[str]:
    """Return a text as lines that begin with a prefix."""
    start = " " * indent + prefix
    return textwrap.wrap(
        text, width, initial_indent=start, subsequent_indent=start, break_long_words=False, break_on_hyphens=False
    )


def enclosed(head: str, items: Sequence[str], tail: str, *, indent: int) -> list[str]:
    """Return `head`, items and `tail` on one line, or the items on one line between them, or each on its own line."""
    start, inner = " " * indent, " " * (indent + 4)
    joined = ", ".join(items)
    if len(start) + len(head) + len(joined) + len(tail) <= WIDTH:
        return [f"{start}{head}{joined}{tail}"]
    if len(inner) + len(joined) <= WIDTH:
        return [start + head, inner + joined, start + tail]
    return [start + head, *(f"{inner}{item}," for item in items), start + tail]


def camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
