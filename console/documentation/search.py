"""Search in the documentation: an index of sections in SQLite (FTS5), built by the first search of a process.

See docs/decisions/0140, 0213 and 0287.
"""

import difflib
import functools
import itertools
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from console.documentation.error_catalogue import error_entries
from console.documentation.excerpts import END, START, excerpt
from console.documentation.markdown import plain_paragraphs
from console.documentation.pages import (
    URL,
    DocumentationPage,
    NavigationEntry,
    PageSection,
    documentation_page,
    page_sections,
)
from console.documentation.reference import reference_pages
from console.documentation.search_terms import STOP_WORDS, SYNONYMS

MAX_QUERY_LENGTH = 100
MAX_TERMS = 8
MAX_RESULTS = 15
MAX_LONGER = 20
# The least score of a result as a share of the best one.
MIN_SHARE = 0.3
MIN_FUZZY_LENGTH = 4
SIMILARITY = 0.75
WORD = re.compile(r"[^\W_]+")
# A setting or an error code: its words side by side are more than each of them.
NAME = re.compile(r"[^\W_]+(?:_[^\W_]+)+")
# "scheduledFor" is also found by its parts, as SQLite does with "recipient_suppressed".
CAMEL_NAME = re.compile(r"\b[a-z0-9]+(?:[A-Z][a-z0-9]+)+\b")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# The weight of a word in the heading of a page and of a section. Each further word of the heading costs a share of it.
TITLE, HEADING, LENGTH_COST = 16.0, 7.0, 0.25
# The weight of a word that is not the one of the query. A misspelt one is as similar as difflib's ratio says.
LONGER, SYNONYM, MISSPELT = 0.6, 0.5, 0.4
# Guides explain, and the others list; the changelog names everything. Their pages themselves count fully.
GUIDE, REFERENCE, ERROR = 1.0, 0.8, 0.5
# Pages about other services answer few questions about this one.
MIGRATION, MIGRATIONS = 0.7, "migrate/"
SECTIONS = {
    "changelog": 0.2,
    "figures": 0.5,
    "performance": 0.5,
    "settings": 0.3,
    "specification": 0.8,
    "troubleshooting": 1.3,
}

TABLES = """
CREATE VIRTUAL TABLE sections USING fts5(heading, text, context, weight UNINDEXED, tokenize='porter unicode61');
CREATE VIRTUAL TABLE synonyms USING fts5(words, tokenize='porter unicode61');
"""
# highlight() marks a word in the heading. Weights of 4 let repeated words and short texts count less.
FIND = """
SELECT rowid, -bm25(sections, 4, 4, 4) * iif(highlight(sections, 0, '<', '') != heading, weight, 1)
FROM sections WHERE sections MATCH ?
"""
MARKED = "SELECT highlight(sections, 1, ?, ?) FROM sections WHERE sections MATCH ? AND rowid = ?"


@dataclass(frozen=True)
class SearchEntry:
    """A section of a page.

    page, summary: title and first sentence of its page.
    text: what excerpts show.
    other: words that are only found, such as code and the names of fields.
    factor: the weight of its kind of page.
    """

    page: str
    summary: str
    heading: str
    url: str
    text: str
    other: str
    factor: float = GUIDE

    def columns(self) -> tuple[str, str, str, float]:
        """Return the values of `sections`."""
        names = CAMEL.sub(" ", " ".join(CAMEL_NAME.findall(f"{self.heading} {self.text} {self.other}")))
        most = HEADING if "#" in self.url else TITLE
        weight = most / (1 + LENGTH_COST * self.heading.count(" "))
        return self.heading, self.text, f"{self.page}\n{self.other}\n{names}", weight


@dataclass(frozen=True)
class SearchResult:
    entry: SearchEntry
    excerpt: str


@dataclass(frozen=True)
class SearchIndex:
    """The searchable sections.

    entries: the sections by their row in `sections`, from 0.
    words: all words, short ones first.
    """

    entries: tuple[SearchEntry, ...]
    words: tuple[str, ...]
    database: sqlite3.Connection

    def result(self, row: int, phrases: str) -> SearchResult:
        ((text,),) = self.database.execute(MARKED, (START, END, phrases, row))
        entry = self.entries[row]
        return SearchResult(entry, excerpt(text, summary=entry.summary))

    def scores(self, phrases: dict[str, float]) -> dict[int, float]:
        """Return the score in each entry of the best of the phrases, each of which has a weight."""
        scores: dict[int, float] = {}
        for phrase, weight in phrases.items():
            for row, score in self.database.execute(FIND, (phrase,)):
                scores[row] = max(scores.get(row, 0), weight * score)
        return scores

    def phrases(self, word: str) -> dict[str, float]:
        """Return what a word finds, with weights: itself, its synonyms, and longer words or else similar ones."""
        synonyms, longer = self.synonyms(word), [one for one in self.words if one.startswith(word)]
        lengths = range(len(word) - 1, len(word) + 2) if len(word) >= MIN_FUZZY_LENGTH else ()
        near = [] if synonyms or longer else [one for one in self.words if len(one) in lengths]
        similar = difflib.get_close_matches(word, near, cutoff=SIMILARITY)
        # The synonyms of a word that was perhaps meant are the least certain.
        found = dict.fromkeys(itertools.chain.from_iterable(map(self.synonyms, similar)), MISSPELT * SYNONYM)
        found |= dict.fromkeys(similar, MISSPELT)
        # "send" means no SendGrid, but "deliverab" is being typed.
        found |= (
            dict.fromkeys([] if word in longer else longer[:MAX_LONGER], LONGER)
            | dict.fromkeys(synonyms, SYNONYM)
            | {word: 1.0}
        )
        return {f'"{one}"': weight for one, weight in found.items()}

    def synonyms(self, word: str) -> list[str]:
        lines = self.database.execute("SELECT words FROM synonyms WHERE synonyms MATCH ?", (f'"{word}"',))
        return [one for (words,) in lines for one in words.split()]


def search(query: str) -> list[SearchResult]:
    """Return the best sections. One that lacks some words of the query counts less: questions have many."""
    index = search_index()
    terms = query_terms(query[:MAX_QUERY_LENGTH], index)
    scores: dict[int, list[float]] = defaultdict(list)
    for row, score in (item for phrases in terms for item in index.scores(phrases).items()):
        scores[row].append(score * index.entries[row].factor)
    totals = {row: sum(found) * len(found) / len(terms) for row, found in scores.items()}
    best = sorted(totals, key=lambda row: (-totals[row], row))[:MAX_RESULTS]
    marked = " OR ".join({phrase for phrases in terms for phrase in phrases})
    return [index.result(row, marked) for row in best if totals[row] > MIN_SHARE * totals[best[0]]]


def query_terms(query: str, index: SearchIndex) -> list[dict[str, float]]:
    """Return what each word of a query finds, without stop words unless it has no others, and each name in it."""
    typed = WORD.findall(query.lower().replace("e-mail", "email"))
    words = ([word for word in typed if word not in STOP_WORDS] or typed)[:MAX_TERMS]
    terms = {word: index.phrases(word) for word in words}
    for first, second in itertools.pairwise(typed):
        # "web hook" is also "webhook".
        both = {f'"{first} {second}"': 1.0, f'"{first}{second}"': 1.0}
        if first in terms and second in terms:
            terms[first] |= both
            terms[second] |= both
    return [*terms.values(), *({f'"{name}"': 1.0} for name in NAME.findall(query))]


@functools.cache
def search_index() -> SearchIndex:
    entries = (*_page_entries(), *_reference_entries(), *_error_entries())
    # Only this function writes. SQLite lets threads take turns.
    database = sqlite3.connect(":memory:", check_same_thread=False)
    database.executescript(TABLES)
    rows = [(number, *entry.columns()) for number, entry in enumerate(entries)]
    with database:
        database.executemany(
            "INSERT INTO sections (rowid, heading, text, context, weight) VALUES (?, ?, ?, ?, ?)", rows
        )
        database.executemany("INSERT INTO synonyms VALUES (?)", ((line,) for line in SYNONYMS))
    words = {word for row in rows for text in row[1:4] for word in WORD.findall(str(text).lower())}
    return SearchIndex(entries, tuple(sorted(words, key=len)), database)


def _page_entries() -> Iterator[SearchEntry]:
    for entry in (entry for section in page_sections() for entry in section.entries if entry.name):
        if page := documentation_page(entry.name):
            yield from (_section_entry(entry, page, section) for section in page.sections)


def _section_entry(entry: NavigationEntry, page: DocumentationPage, section: PageSection) -> SearchEntry:
    is_page = section.heading.level == 1
    return SearchEntry(
        page=entry.title,
        summary=page.summary,
        heading=section.heading.text,
        url=f"{URL}{entry.name}" + ("" if is_page else f"#{section.heading.anchor}"),
        text=section.text,
        other=section.other,
        factor=GUIDE if is_page else _section_factor(entry.name),
    )


def _section_factor(name: str) -> float:
    return MIGRATION if name.startswith(MIGRATIONS) else SECTIONS.get(name, GUIDE)


def _reference_entries() -> Iterator[SearchEntry]:
    for page in reference_pages():
        for operation in page.operations:
            yield SearchEntry(
                page=f"API reference: {page.title}",
                summary=page.summary,
                heading=operation.title,
                url=f"{page.url}#{operation.id}",
                text=operation.text,
                other=" ".join([operation.method, operation.path, *(field.name for field in operation.body)]),
                factor=REFERENCE,
            )


def _error_entries() -> Iterator[SearchEntry]:
    for error in error_entries():
        text = "\n".join(plain_paragraphs(error.text))
        yield SearchEntry("Errors", "", error.code, f"{URL}errors#{error.code}", text, "", ERROR)
