"""Search in the documentation: an index of sections, built once per process, without an external service.

See docs/decisions/0140.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from documentation.error_catalogue import error_entries
from documentation.pages import URL, documentation_page, page_sections
from documentation.reference import reference_pages

MAX_QUERY_LENGTH = 100
MAX_TERMS = 8
MAX_RESULTS = 15
EXCERPT_LENGTH = 160
# The weight of a term in each part of a section; twice that for the beginning of a word.
PAGE, HEADING, TEXT = 3, 8, 1


@dataclass(frozen=True)
class SearchEntry:
    """A section of a page. page: the title of its page."""

    page: str
    heading: str
    url: str
    text: str

    @functools.cached_property
    def lowered(self) -> tuple[tuple[int, str], ...]:
        parts = ((PAGE, self.page), (HEADING, self.heading), (TEXT, self.text))
        return tuple((weight, f" {text.lower()}") for weight, text in parts)

    def score(self, terms: list[str]) -> int:
        """Return the weight of the terms in this section; 0 if one of them is missing."""
        scores = [self._score_of(term) for term in terms]
        return sum(scores) if all(scores) else 0

    def _score_of(self, term: str) -> int:
        return sum(weight * (1 + (f" {term}" in text)) for weight, text in self.lowered if term in text)

    def excerpt(self, terms: list[str]) -> str:
        """Return the text around the first term."""
        positions = [position for term in terms if (position := self.text.lower().find(term)) >= 0]
        start = self.text.rfind(" ", 0, max(min(positions, default=0) - 40, 0)) + 1
        text = self.text[start : start + EXCERPT_LENGTH]
        return f"{'…' if start else ''}{text}{'…' if start + EXCERPT_LENGTH < len(self.text) else ''}"


@dataclass(frozen=True)
class SearchResult:
    entry: SearchEntry
    excerpt: str


def search(query: str) -> list[SearchResult]:
    """Return the best sections that contain every term of the query."""
    terms = query[:MAX_QUERY_LENGTH].lower().split()[:MAX_TERMS]
    if not terms:
        return []
    scored = [(entry.score(terms), entry) for entry in search_index()]
    best = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])[:MAX_RESULTS]
    return [SearchResult(entry, entry.excerpt(terms)) for _, entry in best]


@functools.cache
def search_index() -> tuple[SearchEntry, ...]:
    return (*_page_entries(), *_reference_entries(), *_error_entries())


def _page_entries() -> Iterator[SearchEntry]:
    for entry in (entry for section in page_sections() for entry in section.entries if entry.name):
        page = documentation_page(entry.name)
        for heading, text in page.sections if page else ():
            anchor = "" if heading.level == 1 else f"#{heading.anchor}"
            yield SearchEntry(entry.title, heading.text, f"{URL}{entry.name}{anchor}", text)


def _reference_entries() -> Iterator[SearchEntry]:
    for page in reference_pages():
        for operation in page.operations:
            names = (field.name for field in operation.body)
            text = " ".join([operation.text, operation.method, operation.path, *names])
            yield SearchEntry(f"API reference: {page.title}", operation.title, f"{page.url}#{operation.id}", text)


def _error_entries() -> Iterator[SearchEntry]:
    for error in error_entries():
        yield SearchEntry("Errors", error.code, f"{URL}errors#{error.code}", error.text)
