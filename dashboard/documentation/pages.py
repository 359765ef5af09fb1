"""Documentation pages: the Markdown files that docs/README.md lists, rendered once per process.

Its sections are the navigation; the section Development lists files for developers, which are not served.
"""

import functools
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

INDEX = "README.md"
URL = "/docs/"
NOT_SERVED = "Development"
# Decisions are for developers: on the site, the reference in parentheses is left out.
DECISION_REFERENCE = re.compile(r"\s\(\[[\w ]+\]\(decisions/[^)]+\)(, \[\d{4}\]\(decisions/[^)]+\))*\)")
# So that a keyboard can scroll it.
FOCUSABLE = 'tabindex="0"'


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
class DocumentationPage:
    """headings: anchor and text of each section."""

    title: str
    body: SafeString
    headings: tuple[tuple[str, str], ...]


@dataclass
class Anchors:
    """Ids of headings, by the rule of GitHub: links to sections work there too."""

    used: dict[str, int] = field(default_factory=dict)

    def add(self, text: str) -> str:
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        count = self.used.get(slug, 0)
        self.used[slug] = count + 1
        return f"{slug}-{count}" if count else slug


def directory() -> Path:
    return Path(settings.BASE_DIR) / "docs"


@functools.cache
def navigation() -> tuple[NavigationSection, ...]:
    """Return the sections of docs/README.md that are served."""
    sections: dict[str, list[NavigationEntry]] = {}
    title = ""
    for token, following in _pairs(_parser().parse((directory() / INDEX).read_text(encoding="utf-8"))):
        if token.type == "heading_open" and token.tag == "h2":
            title = following.content
            sections[title] = []
        elif token.type == "inline" and title:
            sections[title] += _entries(token)
    return tuple(NavigationSection(name, tuple(found)) for name, found in sections.items() if name != NOT_SERVED)


def page_names() -> set[str]:
    return {entry.name for section in navigation() for entry in section.entries if entry.name}


@functools.cache
def documentation_page(name: str) -> DocumentationPage | None:
    """Return a rendered page; None if the index does not list it. name: "" for the index."""
    if name and name not in page_names():
        return None
    text = (directory() / (f"{name}.md" if name else INDEX)).read_text(encoding="utf-8")
    parser = _parser()
    tokens = _without_development(parser.parse(DECISION_REFERENCE.sub("", text)))
    headings = _add_anchors(tokens)
    for token, following in _pairs(tokens):
        _rewrite_links(token, folder=posixpath.dirname(name))
        _mark_empty_header(token, following)
    body = mark_safe(parser.renderer.render(tokens, parser.options, {}))  # noqa: S308 - html is disabled in the parser
    (_, title), *sections = [(anchor, heading) for tag, anchor, heading in headings if tag in {"h1", "h2"}]
    return DocumentationPage(title, body, tuple(sections))


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("table_open", lambda *_: f'<div class="scroll" {FOCUSABLE}><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("fence", _render_code)
    return parser


def _render_code(renderer: object, tokens: list[Token], index: int, *_: object) -> str:
    return f"<pre {FOCUSABLE}><code>{escape(tokens[index].content)}</code></pre>\n"


def _without_development(tokens: list[Token]) -> list[Token]:
    """Drop the section for developers from the index."""
    for position, (token, following) in enumerate(_pairs(tokens)):
        if token.type == "heading_open" and token.tag == "h2" and following.content == NOT_SERVED:
            return tokens[:position]
    return tokens


def _add_anchors(tokens: list[Token]) -> list[tuple[str, str, str]]:
    """Give each heading an id; return tag, id and text of all."""
    anchors, headings = Anchors(), []
    for token, following in _pairs(tokens):
        if token.type == "heading_open":
            text = "".join(child.content for child in following.children or ())
            token.attrSet("id", anchors.add(text))
            headings.append((token.tag, str(token.attrGet("id")), text))
    return headings


def _rewrite_links(token: Token, *, folder: str) -> None:
    """Lead links of a file in a folder of docs/ to the pages of the site; links to other files become text."""
    is_removed = False
    for child in token.children or ():
        if child.type == "link_open":
            url = site_url(str(child.attrGet("href")), folder=folder)
            child.attrSet("href", url or "")
            is_removed = url is None
        if child.type in {"link_open", "link_close"} and is_removed:
            child.type, child.tag, child.nesting, child.content = "text", "", 0, ""


def _mark_empty_header(token: Token, content: Token) -> None:
    """Make an empty header cell of a table a data cell: screen readers would announce a header without a name."""
    if token.type == "th_open" and not content.content:
        token.tag = "td"


def site_url(target: str, *, folder: str) -> str | None:
    """Return the URL on the site of a link in a file in a folder of docs/; None for a file that is not served."""
    if target.startswith(("#", "/", "http://", "https://", "mailto:")):
        return target
    path, mark, anchor = target.partition("#")
    file = posixpath.normpath(posixpath.join(folder, path))
    name = file.removesuffix(".md")
    if file == INDEX:
        return URL
    return f"{URL}{name}{mark}{anchor}" if name in page_names() else None


def _entries(token: Token) -> Iterator[NavigationEntry]:
    """Yield the links of a list item."""
    for child, following in _pairs(token.children or []):
        if child.type == "link_open":
            target = str(child.attrGet("href"))
            name = target.removesuffix(".md") if target.endswith(".md") else ""
            yield NavigationEntry(following.content, f"{URL}{name}" if name else target, name)


def _pairs(tokens: list[Token]) -> Iterator[tuple[Token, Token]]:
    """Yield each token with the next one; the last with itself."""
    return zip(tokens, [*tokens[1:], *tokens[-1:]], strict=True)
