"""Search in the documentation: an index of sections, built once per process, without an external service.

See docs/decisions/0140 and 0213.
"""

import bisect
import functools
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from console.documentation.error_catalogue import error_entries
from console.documentation.pages import URL, documentation_page, page_sections
from console.documentation.reference import reference_pages
from console.documentation.search_terms import (
    MIN_FUZZY_LENGTH,
    differ_by_one_character,
    query_words,
    single_words,
    stem,
    synonyms_of,
    verb_stems,
    words_of,
)

MAX_QUERY_LENGTH = 100
MAX_TERMS = 8
MAX_RESULTS = 15
EXCERPT_LENGTH = 160
# The weight of a word in each part of a section. A page is found by its title before its sections.
TITLE, HEADING, PAGE, TEXT = 12.0, 7.0, 1.5, 1.0
# Factors of a word that is not the one of the query.
BEGINNING, DERIVED, SYNONYM, MISSPELT = 0.6, 0.6, 0.5, 0.4
# Long titles have more words to match: the share of its weight that each further word costs.
LENGTH_COST = 0.15
# Guides explain, and the others list; the changelog names everything.
GUIDE, REFERENCE, ERROR = 1.0, 0.8, 0.6
PAGES = {"changelog": 0.2, "figures": 0.5, "performance": 0.5, "settings": 0.6, "specification": 0.8}


@dataclass(frozen=True)
class SearchEntry:
    """A section of a page.

    page: the title of its page.
    factor: how much its kind of page weighs.
    """

    page: str
    heading: str
    url: str
    text: str
    factor: float = GUIDE

    @property
    def is_page(self) -> bool:
        return "#" not in self.url

    def weights(self) -> dict[str, float]:
        """Return the weight of each stem of this section."""
        counts = Counter(map(stem, words_of(self.text)))
        found = defaultdict(float, {one: TEXT * count / (count + 1) for one, count in counts.items()})
        titles = [(TITLE, self.heading)] if self.is_page else [(HEADING, self.heading), (PAGE, self.page)]
        for weight, title in titles:
            words = words_of(title)
            pairs = {first + second for first, second in itertools.pairwise(words)}
            for one in {stem(word) for word in {*words, *pairs}}:
                found[one] += weight / (1 + LENGTH_COST * (len(words) - 1))
        return found

    def excerpt(self, stems: Mapping[str, float]) -> str:
        """Return the text around the first of the stems."""
        words = self.text.split(" ")
        first = next((index for index, word in enumerate(words) if {*map(stem, words_of(word))} & stems.keys()), 0)
        position = len(" ".join(words[:first]))
        start = self.text.rfind(" ", 0, max(position - 40, 0)) + 1
        text = self.text[start : start + EXCERPT_LENGTH]
        return f"{'…' if start else ''}{text}{'…' if start + EXCERPT_LENGTH < len(self.text) else ''}"


@dataclass(frozen=True)
class SearchResult:
    entry: SearchEntry
    excerpt: str


@dataclass(frozen=True)
class SearchIndex:
    """The index of the search.

    weights: for each stem, the weight in each entry that has it, by the entry's position.

    stems: all stems in order.
    words: those of single words, and not of two words of a title.
    """

    entries: tuple[SearchEntry, ...]
    weights: Mapping[str, Mapping[int, float]]
    stems: tuple[str, ...]
    words: frozenset[str]

    def matches(self, word: str) -> dict[str, float]:
        """Return the stems that a word of a query matches, each with its weight: the rarer a word, the higher.

        Words that differ by one character count only if the index has no word that begins like the one of the query.
        """
        own = stem(word)
        found = dict.fromkeys(self._known(synonyms_of(own)), SYNONYM)
        found |= dict.fromkeys(self._known(verb_stems(word)), DERIVED)
        begun = dict.fromkeys((*self._beginning_with(own), *self._beginning_with(word)), BEGINNING)
        found |= begun or dict.fromkeys((*self._similar(own), *self._similar(word)), MISSPELT)
        most = self._rarity(own) if own in self.weights else math.inf
        weighted = {one: weight * min(self._rarity(one), most) for one, weight in found.items()}
        return weighted | {own: most} if own in self.weights else weighted

    def joined(self, words: list[str]) -> list[str]:
        """Return the words, two as one if the index has them as one word: "web hook" is "webhook"."""
        for index, (first, second) in enumerate(itertools.pairwise(words)):
            if stem(first + second) in self.words:
                return [*words[:index], first + second, *self.joined(words[index + 2 :])]
        return words

    def _rarity(self, one: str) -> float:
        return math.log(1 + len(self.entries) / len(self.weights[one]))

    def _known(self, stems: Iterator[str] | frozenset[str]) -> Iterator[str]:
        return (one for one in stems if one in self.weights)

    def _beginning_with(self, text: str) -> Iterator[str]:
        start = bisect.bisect_left(self.stems, text)
        return itertools.takewhile(lambda one: one.startswith(text), itertools.islice(self.stems, start, None))

    def _similar(self, own: str) -> Iterator[str]:
        """Yield the stems that differ by one character, and those of their synonyms."""
        if len(own) < MIN_FUZZY_LENGTH:
            return
        for one in self.stems:
            if differ_by_one_character(own, one):
                yield one
                yield from self._known(synonyms_of(one))


def search(query: str) -> list[SearchResult]:
    """Return the best sections: those with every word of the query, or if there are none, those with most of them."""
    index = search_index()
    words = index.joined(query_words(query[:MAX_QUERY_LENGTH]))[:MAX_TERMS]
    matches = [index.matches(word) for word in words]
    scores = [_scores(index, found) for found in matches]
    counts = Counter(position for score in scores for position in score)
    needed = max(counts.values(), default=0)
    ranked = {
        position: sum(score.get(position, 0) for score in scores) * index.entries[position].factor
        for position, count in counts.items()
        if count == needed
    }
    best = sorted(ranked, key=lambda position: (-ranked[position], position))[:MAX_RESULTS]
    stems = {one: weight for found in matches for one, weight in found.items()}
    return [SearchResult(index.entries[one], index.entries[one].excerpt(stems)) for one in best]


def _scores(index: SearchIndex, found: Mapping[str, float]) -> dict[int, float]:
    """Return the score of a word of the query in each entry: that of the best stem that it matches."""
    scores: dict[int, float] = {}
    for one, weight in found.items():
        for position, in_entry in index.weights[one].items():
            scores[position] = max(scores.get(position, 0), weight * in_entry)
    return scores


@functools.cache
def search_index() -> SearchIndex:
    entries = (*_page_entries(), *_reference_entries(), *_error_entries())
    weights: dict[str, dict[int, float]] = {}
    words: set[str] = set()
    for position, entry in enumerate(entries):
        words.update(single_words(f"{entry.heading} {entry.page} {entry.text}"))
        for one, weight in entry.weights().items():
            weights.setdefault(one, {})[position] = weight
    return SearchIndex(entries, weights, tuple(sorted(weights)), frozenset(map(stem, words)))


def _page_entries() -> Iterator[SearchEntry]:
    for entry in (entry for section in page_sections() for entry in section.entries if entry.name):
        page, factor = documentation_page(entry.name), PAGES.get(entry.name, GUIDE)
        for heading, text in page.sections if page else ():
            anchor = "" if heading.level == 1 else f"#{heading.anchor}"
            yield SearchEntry(entry.title, heading.text, f"{URL}{entry.name}{anchor}", text, factor)


def _reference_entries() -> Iterator[SearchEntry]:
    for page in reference_pages():
        for operation in page.operations:
            names = (field.name for field in operation.body)
            text = " ".join([operation.text, operation.method, operation.path, *names])
            url = f"{page.url}#{operation.id}"
            yield SearchEntry(f"API reference: {page.title}", operation.title, url, text, REFERENCE)


def _error_entries() -> Iterator[SearchEntry]:
    for error in error_entries():
        yield SearchEntry("Errors", error.code, f"{URL}errors#{error.code}", error.text, ERROR)
