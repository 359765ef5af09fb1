"""Tables of phrases, looked up in the order in which they are written."""

import re
from collections.abc import Iterable

from delivery.reasons import Reason

GAPS = {"*": 60, "~": 20}
GAP = re.compile(r"([*~])")


class Phrases:
    """Reasons with the phrases that give them.

    A star in a phrase stands for up to sixty characters, a tilde for up to twenty, a bar in one with either for
    "or", whole words: "user|mailbox*unknown|not found".

    Phrases without a gap are looked for as plain strings: a regular expression of all of them is
    a hundred times slower, and this way the time is linear in the text, whatever it holds.
    """

    def __init__(self, *rows: tuple[Reason, tuple[str, ...]]) -> None:
        self._rows = [
            (reason, [phrase for phrase in phrases if not GAP.search(phrase)], _patterns(phrases))
            for reason, phrases in rows
        ]

    def find(self, text: str) -> Reason | None:
        """Return the reason of the first row of which one phrase is in the text."""
        for reason, phrases, patterns in self._rows:
            if any(phrase in text for phrase in phrases) or any(pattern.search(text) for pattern in patterns):
                return reason
        return None


def _patterns(phrases: Iterable[str]) -> list[re.Pattern[str]]:
    return [re.compile("".join(map(_piece, GAP.split(phrase)))) for phrase in phrases if GAP.search(phrase)]


def _piece(part: str) -> str:
    if part in GAPS:
        return f".{{0,{GAPS[part]}}}?"
    if "|" not in part:
        return re.escape(part)
    return rf"\b(?:{'|'.join(map(re.escape, part.split('|')))})\b"
