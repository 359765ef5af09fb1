"""Tables of phrases, looked up in the order in which they are written."""

import re

from delivery.bounces.reasons import Reason

GAPS = {"*": 60, "~": 20}
GAP = re.compile(r"([*~])")


class Phrases:
    """Reasons with the phrases that give them.

    A star in a phrase stands for up to sixty characters, a tilde for up to twenty, a bar in one with either for
    "or", whole words: "user|mailbox*unknown|not found".

    Phrases are looked for as plain strings: a regular expression of all of them is a hundred times slower, and
    this way the time is linear in the text, whatever it holds. Only where all parts of a phrase with gaps are
    there does a regular expression measure the gaps.
    """

    def __init__(self, *rows: tuple[Reason, tuple[str, ...]]) -> None:
        self._rows = [
            (
                reason,
                [phrase for phrase in phrases if not GAP.search(phrase)],
                [_Gapped(phrase) for phrase in phrases if GAP.search(phrase)],
            )
            for reason, phrases in rows
        ]

    def find(self, text: str) -> Reason | None:
        """Return the reason of the first row of which one phrase is in the text."""
        # Plain loops: generators would take twice the time, and a notice is asked a hundred times.
        for reason, phrases, gapped in self._rows:
            for phrase in phrases:
                if phrase in text:
                    return reason
            for gap in gapped:
                if gap.is_in(text):
                    return reason
        return None


class _Gapped:
    """A phrase with gaps."""

    def __init__(self, phrase: str) -> None:
        pieces = GAP.split(phrase)
        self._parts = [piece.split("|") for piece in pieces if piece not in GAPS]
        self._pattern = re.compile("".join(map(_piece, pieces)))

    def is_in(self, text: str) -> bool:
        for words in self._parts:
            if not _has_one(words, text):
                return False
        return bool(self._pattern.search(text))


def _has_one(words: list[str], text: str) -> bool:
    for word in words:  # noqa: SIM110 - any() takes twice the time
        if word in text:
            return True
    return False


def _piece(part: str) -> str:
    if part in GAPS:
        return f".{{0,{GAPS[part]}}}?"
    if "|" not in part:
        return re.escape(part)
    return rf"\b(?:{'|'.join(map(re.escape, part.split('|')))})\b"
