"""Phrase tables, searched in the order in which they are written."""

import re
import unicodedata
from typing import Generic, TypeVar

T = TypeVar("T")

GAPS = {"*": 60, "~": 20, "^": 5}
GAP = re.compile(r"([*~^])")


def without_accents(text: str) -> str:
    """Return a text without accents, which many hosts drop: "buzón" becomes "buzon"."""
    if text.isascii():
        return text
    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


class PhraseTable(Generic[T]):
    """Reasons, or other values, with their phrases.

    A star in a phrase stands for up to sixty characters, a tilde for up to twenty, a caret for up to five: a space or
    an article. In a phrase with any of them, a bar separates alternatives of whole words:
    "user|mailbox*unknown|not found". Accents do not count.

    Phrases are searched as plain strings: one regular expression for all is a hundred times slower, and string search
    is linear in any text. A regular expression checks the gaps only if all parts of a gapped phrase occur.
    """

    def __init__(self, *rows: tuple[T, tuple[str, ...]]) -> None:
        self.rows = rows
        self._searched = [
            (
                reason,
                [phrase for phrase in phrases if not GAP.search(phrase)],
                [_GappedPhrase(phrase) for phrase in phrases if GAP.search(phrase)],
            )
            for reason, phrases in ((reason, list(map(without_accents, phrases))) for reason, phrases in rows)
        ]

    def find(self, text: str) -> T | None:
        """Return the reason of the first row with a phrase in the text, or None."""
        # Plain loops: generators take twice the time, and a bounce notice is searched a hundred times.
        for reason, phrases, gapped in self._searched:
            for phrase in phrases:
                if phrase in text:
                    return reason
            for gap in gapped:
                if gap.is_in(text):
                    return reason
        return None


class _GappedPhrase:
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
        # A part begins a word: "ip*blocked" must not match "recipient ... blocked".
        return (r"\b" if part[:1].isalnum() else "") + re.escape(part)
    return rf"\b(?:{'|'.join(map(re.escape, part.split('|')))})\b"
