"""Excerpts of search results: the sentence of a section that has most words of the query, and those after it.

See docs/decisions/0386.
"""

import re
from collections.abc import Iterator
from itertools import accumulate

# Around each word or phrase that a search has found.
START, END = "\x02", "\x03"
FOUND = re.compile(f"{START}([^{START}{END}]*){END}")
MARKS = re.compile(f"[{START}{END}]")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
LENGTH = 200
# A longer sentence ends after a word.
MAX_LENGTH = 320


def excerpt(text: str, *, summary: str) -> str:
    """Return sentences of a text in which words are marked.

    text: a paragraph on each line.
    summary: the excerpt of a section without text.
    """
    sentences = [sentence for line in text.splitlines() for sentence in _with_followers(SENTENCE_END.split(line))]
    best = max(sentences, key=_rank, default=(summary, ""))
    return _shortened(MARKS.sub("", " ".join(best)).strip())


def _with_followers(sentences: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each sentence of a paragraph with the next ones, as far as both are short."""
    for number, sentence in enumerate(sentences):
        count = sum(length <= LENGTH for length in accumulate(map(len, sentences[number:])))
        yield sentence, " ".join(sentences[number + 1 : number + count])


def _rank(sentence: tuple[str, str]) -> int:
    """Return the number of different words that were found. A sentence is better than a row of a table."""
    first, _ = sentence
    return len(set(" ".join(FOUND.findall(first)).lower().split())) + first.endswith((".", "!", "?"))


def _shortened(text: str) -> str:
    if len(text) <= MAX_LENGTH:
        return text
    words, _, _ = text[:MAX_LENGTH].rpartition(" ")
    return words.rstrip(",;:") + "…"
