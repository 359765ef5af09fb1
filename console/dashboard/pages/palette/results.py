"""Results of the command palettes of both sites: entries in groups, pages by their titles, the documentation."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy

from console.documentation.pages import page_sections
from console.documentation.search import search

MAX_ENTRIES = 8
MAX_TEXT_LENGTH = 200
MIN_NAME_LENGTH = 2
# Objects of one kind, such as templates.
MAX_OBJECTS = 4
# The words for a new object: people write any of them.
NEW = gettext_lazy("new add create")


@dataclass(frozen=True)
class PaletteEntry:
    """An entry of the palette: a link, or a button that does something at once.

    note: what it leads to, where its title is only a name.
    words: further words by which it is found.
    is_post: whether it is a button, which sends a POST.
    value: of the button, which sends it as `workspace`.
    """

    title: str
    url: str
    icon: str
    note: str = ""
    words: str = ""
    is_post: bool = False
    value: str = ""


@dataclass(frozen=True)
class PaletteGroup:
    title: str
    entries: list[PaletteEntry]


def palette_context(groups: Iterable[PaletteGroup]) -> dict[str, Any]:
    """Return the context of the results: the groups with an entry."""
    return {"groups": [group for group in groups if group.entries]}


def find_documentation(text: str) -> list[PaletteEntry]:
    """Return pages by their titles, or else sections by their content."""
    return matching(text, _docs()) or [
        PaletteEntry(result.entry.heading, result.entry.url, "menu_book", result.entry.page)
        for result in search(text)[:MAX_OBJECTS]
    ]


def _docs() -> Iterator[PaletteEntry]:
    for section in page_sections():
        for entry in section.entries:
            yield PaletteEntry(entry.title, entry.url, "menu_book")


def matching(text: str, entries: Iterator[PaletteEntry]) -> list[PaletteEntry]:
    """Return the first entries that have a word which begins with each word of the text."""
    wanted = text.casefold().split()
    found = [entry for entry in entries if _has_words(f"{entry.title} {entry.words}", wanted)]
    return found[:MAX_ENTRIES] if wanted else found


def _has_words(text: str, wanted: list[str]) -> bool:
    words = text.casefold().replace("-", " ").split()
    return all(any(word.startswith(one) for word in words) for one in wanted)
