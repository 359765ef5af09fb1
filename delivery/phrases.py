"""Tables of phrases, looked up in the order in which they are written."""

import re
from collections.abc import Iterable

from delivery.reasons import Reason

GAP = 60


class Phrases:
    """Reasons with the phrases that give them.

    A star in a phrase stands for up to sixty characters, a bar in one with a star for "or", whole words:
    "user|mailbox*unknown|not found".

    Phrases without a star are looked for as plain strings: a regular expression of all of them is
    a hundred times slower, and this way the time is linear in the text, whatever it holds.
    """

    def __init__(self, *rows: tuple[Reason, tuple[str, ...]]) -> None:
        self._rows = [
            (reason, [phrase for phrase in phrases if "*" not in phrase], _patterns(phrases))
            for reason, phrases in rows
        ]

    def find(self, text: str) -> Reason | None:
        """Return the reason of the first row of which one phrase is in the text."""
        for reason, phrases, patterns in self._rows:
            if any(phrase in text for phrase in phrases) or any(pattern.search(text) for pattern in patterns):
                return reason
        return None


def _patterns(phrases: Iterable[str]) -> list[re.Pattern[str]]:
    starred = [phrase.split("*") for phrase in phrases if "*" in phrase]
    return [re.compile(f".{{0,{GAP}}}?".join(map(_either, parts))) for parts in starred]


def _either(part: str) -> str:
    if "|" not in part:
        return re.escape(part)
    return rf"\b(?:{'|'.join(map(re.escape, part.split('|')))})\b"
