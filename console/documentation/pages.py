"""Documentation pages: the Markdown files that docs/README.md lists, rendered once per process.

Its sections are the navigation; the section Development lists files for developers, which are not served.
"""

import functools
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.utils.safestring import SafeString
from markdown_it.token import Token

from console.documentation.markdown import (
    Heading,
    add_anchors,
    is_absolute,
    link_code,
    pairs,
    parser,
    plain_text,
    render_tokens,
    resolve,
    rewrite_links,
    rewrite_source,
)
from console.documentation.reference import operation_url

INDEX = "README.md"
# Relative to docs/, as in its index. On the site, such a file has the name of a page (docs/decisions/0217).
CHANGELOG = "../CHANGELOG.md"
FILES = {"changelog": CHANGELOG}
URL = "/docs/"
NOT_SERVED = "Development"
# Decisions are for developers: on the site, the reference in parentheses is left out.
DECISION = r"\[[\w ]+\]\([./]*(?:docs/)?decisions/[^)]+\)"
DECISION_REFERENCE = re.compile(rf"\s+\({DECISION}(?:,\s+{DECISION})*\)|,\s+(?:decision\s+)?{DECISION}(?=\))")
# Pages for users of this service, whose samples show its URL; those for operators keep the example.
FOR_USERS = ("quickstart/", "frameworks/", "guides/", "migrate/", "tutorial")
EXAMPLE_URL = "https://mail.example.com"
FIRST_SENTENCE = re.compile(r".+?[.](?=\s|$)")


@dataclass(frozen=True)
class NavigationEntry:
    """A link of the navigation.

    name: the path of the page's file in docs/ without .md; empty for a link to another part of the service.
    """

    title: str
    url: str
    name: str


@dataclass(frozen=True)
class NavigationSection:
    title: str
    entries: tuple[NavigationEntry, ...]


@dataclass(frozen=True)
class PageSection:
    """A section for the search.

    text: its paragraphs, list items and table rows without markup, a line each.
    other: its code and the headers of its tables, which excerpts do not show.
    """

    heading: Heading
    text: str
    other: str


@dataclass(frozen=True)
class DocumentationPage:
    """A rendered page.

    summary: its first sentence.
    sections: those of the search.
    """

    title: str
    summary: str
    body: SafeString
    headings: tuple[Heading, ...]
    sections: tuple[PageSection, ...]


def directory() -> Path:
    return Path(settings.BASE_DIR) / "docs"


def page_file(name: str) -> Path:
    return directory() / FILES.get(name, f"{name}.md")


def page_name(file: str) -> str:
    """Return the name of the page for a file. file: its path relative to docs/."""
    names = {other: name for name, other in FILES.items()}
    return names.get(file) or file.removeprefix("../docs/").removesuffix(".md")


@functools.cache
def page_sections() -> tuple[NavigationSection, ...]:
    """Return the sections of docs/README.md that are served."""
    sections: dict[str, list[NavigationEntry]] = {}
    title = ""
    for token, following in pairs(parser().parse((directory() / INDEX).read_text(encoding="utf-8"))):
        if token.type == "heading_open" and token.tag == "h2":
            title = following.content
            sections[title] = []
        elif token.type == "inline" and title:
            sections[title] += _entries(token)
    return tuple(NavigationSection(name, tuple(pages)) for name, pages in sections.items() if name != NOT_SERVED)


@functools.cache
def page_names() -> frozenset[str]:
    return frozenset(entry.name for section in page_sections() for entry in section.entries if entry.name)


@functools.cache
def image_files() -> frozenset[str]:
    """Return the paths of the diagrams in docs/."""
    return frozenset(f"images/{file.name}" for file in (directory() / "images").glob("*.svg"))


def documentation_page(name: str) -> DocumentationPage | None:
    """Return a rendered page; None if the index does not list it."""
    # A name is text from a URL: only those of pages are cached.
    return _render_page(name) if name in page_names() else None


@functools.cache
def _render_page(name: str) -> DocumentationPage:
    tokens = parser().parse(_source(name))
    headings = add_anchors(tokens)
    rewrite_links(tokens, functools.partial(site_url, folder=_folder(name)))
    link_code(tokens, operation_url)
    return DocumentationPage(
        headings[0].text, _summary(tokens), render_tokens(tokens), headings[1:], tuple(_sections(tokens, headings))
    )


def markdown_page(name: str) -> str | None:
    """Return the Markdown of a page, with links to the Markdown of other pages; None if it is not served."""
    return _rewritten_page(name) if name in page_names() else None


@functools.cache
def _rewritten_page(name: str) -> str:
    return rewrite_source(_source(name), functools.partial(markdown_url, folder=_folder(name)))


def site_url(target: str, *, folder: str, suffix: str = "") -> str | None:
    """Return the URL on the site of a link in a file in a folder of docs/; None for a file that is not served."""
    if is_absolute(target):
        return target
    path, mark, anchor = target.partition("#")
    file = resolve(path, folder=folder)
    name = page_name(file)
    if file == INDEX:
        return URL
    if file in image_files():
        return f"{URL}{file}"
    return f"{URL}{name}{suffix}{mark}{anchor}" if name in page_names() else None


def markdown_url(target: str, *, folder: str) -> str | None:
    return site_url(target, folder=folder, suffix=".md")


def _folder(name: str) -> str:
    """Return the folder of a page's file, relative to docs/."""
    return posixpath.dirname(FILES.get(name, name))


def _source(name: str) -> str:
    """Return the text of a page for this service: with its URL, without references to decisions."""
    text = DECISION_REFERENCE.sub("", page_file(name).read_text(encoding="utf-8"))
    return text.replace(EXAMPLE_URL, settings.PUBLIC_URL) if name.startswith(FOR_USERS) else text


def _summary(tokens: list[Token]) -> str:
    paragraph = next(following for token, following in pairs(tokens) if token.type == "paragraph_open")
    text = plain_text(paragraph)
    sentence = FIRST_SENTENCE.match(text)
    return sentence[0] if sentence else text


def _sections(tokens: list[Token], headings: tuple[Heading, ...]) -> Iterator[PageSection]:
    texts: list[list[str]] = []
    others: list[list[str]] = []
    row: list[str] = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type == "heading_open":
            texts.append([])
            others.append([])
        elif token.type == "fence":
            others[-1].append(token.content)
        elif token.type == "tr_close":
            texts[-1].append(_row_text(row))
            row = []
        elif token.type == "inline" and before:
            places = {"heading_open": [], "th_open": others[-1], "td_open": row}
            places.get(before.type, texts[-1]).append(plain_text(token))
    for heading, paragraphs, other in zip(headings, texts, others, strict=True):
        yield PageSection(heading, "\n".join(filter(None, paragraphs)), "\n".join(other))


def _row_text(cells: list[str]) -> str:
    name, *others = [cell for cell in cells if cell] or [""]
    return f"{name}: {'; '.join(others)}" if others else name


def _entries(token: Token) -> Iterator[NavigationEntry]:
    """Yield the links of a list item."""
    for child, following in pairs(token.children or []):
        if child.type == "link_open":
            target = str(child.attrGet("href"))
            name = page_name(target) if target.endswith(".md") else ""
            yield NavigationEntry(following.content, f"{URL}{name}" if name else target, name)
