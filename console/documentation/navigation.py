"""The navigation of the documentation: the pages of docs/README.md, and the API reference after the guides."""

import functools
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from console.documentation.pages import URL, NavigationEntry, NavigationSection, documentation_page, page_sections
from console.documentation.reference import reference_page, reference_pages

# The API reference follows this section of docs/README.md.
GUIDES = "Guides"
OVERVIEW = "Authentication, conventions, errors and limits of the API."


@dataclass(frozen=True)
class DescribedEntry:
    """A page of the navigation with its first sentence."""

    title: str
    url: str
    summary: str


@dataclass(frozen=True)
class PageLink:
    """A link at the end of a page. relation: `prev` or `next`, in the order of the navigation."""

    relation: str
    section: str
    entry: NavigationEntry


@functools.cache
def navigation() -> tuple[NavigationSection, ...]:
    sections = []
    for section in page_sections():
        sections.append(section)
        if section.title == GUIDES:
            sections.append(reference_section())
    return tuple(sections)


def reference_section() -> NavigationSection:
    overview = NavigationEntry("Overview", f"{URL}api", "")
    pages = (NavigationEntry(page.title, page.url, "") for page in reference_pages())
    return NavigationSection("API reference", (overview, *pages, NavigationEntry("Errors", f"{URL}errors", "")))


@functools.cache
def page_links() -> Mapping[str, tuple[PageLink, ...]]:
    """Return the links to the previous and the next page, by the URL of the page.

    See docs/decisions/0386.
    """
    pages = [(section.title, entry) for section in navigation() for entry in section.entries]
    links = defaultdict(list)
    for (section, page), (next_section, next_page) in itertools.pairwise(pages):
        links[page.url].append(PageLink("next", next_section, next_page))
        links[next_page.url].append(PageLink("prev", section, page))
    return {url: tuple(found) for url, found in links.items()}


@functools.cache
def described_sections() -> tuple[tuple[str, tuple[DescribedEntry, ...]], ...]:
    """Return title and pages of each section; the list of errors, which has no Markdown, is left out."""
    return tuple((section.title, tuple(_described(section))) for section in navigation())


def _described(section: NavigationSection) -> Iterator[DescribedEntry]:
    for entry in section.entries:
        page = documentation_page(entry.name)
        reference = reference_page(entry.url.rpartition("/")[2])
        if page or entry.url.startswith(f"{URL}api"):
            summary = page.summary if page else reference.summary if reference else OVERVIEW
            yield DescribedEntry(entry.title, entry.url, summary)
