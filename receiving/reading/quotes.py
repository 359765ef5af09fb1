"""Quotes: the text of a message in front of the earlier messages that it quotes."""

from collections.abc import Sequence

import quotequail

# The text in which quotes are looked for.
MAX_LENGTH = 64 * 1024
MAX_LINES = 2_000
# The most characters of the one or two lines that introduce a quote. Patterns of the library take cubic time in the
# length of a line: 60 kB would hold the interpreter for hours.
MAX_INTRODUCTION = 300
# The last characters of all introductions that the library knows: it tries 43 patterns on each line.
ENDS = (":", "-", "_", ">")


def find_reply(text: str) -> str | None:
    """Return the text in front of quoted messages; None if nothing is left or the text is too long to judge."""
    start = text[:MAX_LENGTH]
    if not start.strip() or start.count("\n") > MAX_LINES:
        return None
    lines = start.split("\n")
    introduction = next((number for number in range(len(lines)) if _introduces(lines[number : number + 2])), len(lines))
    own = "\n".join(lines[:introduction]).rstrip().split("\n")
    # Quoted lines at the end without a line that introduces them.
    while own and (own[-1].startswith(">") or not own[-1].strip()):
        own.pop()
    return "\n".join(own).strip() or None


def _introduces(lines: Sequence[str]) -> bool:
    """Return whether the first of two lines, or both together, introduce a quote, such as: On Monday, Ada wrote:"""
    if sum(map(len, lines)) > MAX_INTRODUCTION:
        lines = lines[:1]
    if not lines[0].strip() or len(lines[0]) > MAX_INTRODUCTION:
        return False
    if not any(line.rstrip().endswith(ENDS) for line in lines):
        return False
    own: str = quotequail.quote("\n".join(lines), quote_intro_line=True)[0][1]
    return own == ""
