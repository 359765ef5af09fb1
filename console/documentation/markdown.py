"""Markdown: parsing, links between the files of docs/, and HTML with anchors and groups of code samples."""

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from django.utils.html import escape
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.token import Token

# So that a keyboard can scroll it.
FOCUSABLE = 'tabindex="0"'
# Names of the languages of code samples; in a group, a shell sample is a call of curl.
LANGUAGES = {
    "sh": "curl",
    "javascript": "JavaScript",
    "js": "JavaScript",
    "python": "Python",
    "php": "PHP",
    "ruby": "Ruby",
    "go": "Go",
    "java": "Java",
}
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])+)\]\(([^()\s]+)\)")


@dataclass(frozen=True)
class Heading:
    """level: 1 for the title of the page."""

    level: int
    anchor: str
    text: str


@dataclass
class Anchors:
    """Ids of headings, by the rule of GitHub: links to sections work there too."""

    used: dict[str, int] = field(default_factory=dict)

    def add(self, text: str) -> str:
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        count = self.used.get(slug, 0)
        self.used[slug] = count + 1
        return f"{slug}-{count}" if count else slug


def parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("table_open", lambda *_: f'<div class="scroll" {FOCUSABLE}><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("fence", _render_code)
    return parser


def render_markdown(text: str) -> SafeString:
    """Return the HTML of a short text without headings."""
    return SafeString(parser().render(text))


def render_tokens(tokens: list[Token]) -> SafeString:
    markdown = parser()
    return SafeString(markdown.renderer.render(tokens, markdown.options, {}))


def add_anchors(tokens: list[Token]) -> tuple[Heading, ...]:
    """Give each heading an id; return all headings."""
    anchors, headings = Anchors(), []
    for token, following in pairs(tokens):
        if token.type == "heading_open":
            text = plain_text(following)
            token.attrSet("id", anchors.add(text))
            headings.append(Heading(int(token.tag[1]), str(token.attrGet("id")), text))
    return tuple(headings)


def plain_text(token: Token) -> str:
    """Return the text of a paragraph, a cell or a heading without its markup."""
    return "".join(" " if child.type == "softbreak" else child.content for child in token.children or ())


def plain_paragraphs(text: str) -> Iterator[str]:
    """Yield the text of each paragraph of a short text without its markup."""
    return (plain_text(token) for token in parser().parse(text) if token.type == "inline")


def rewrite_links(tokens: list[Token], site_url: Callable[[str], str | None]) -> None:
    """Lead links and images to the site; links for which `site_url` returns None become text."""
    for token, following in pairs(tokens):
        _rewrite_links_of(token, site_url)
        _mark_empty_header(token, following)


def link_code(tokens: list[Token], code_url: Callable[[str], str | None]) -> None:
    """Link code to the URL that `code_url` returns for it, except in headings and in other links."""
    for before, token in pairs(tokens):
        if before.type != "heading_open" and token.children:
            token.children = list(_with_links(token.children, code_url))


def rewrite_source(text: str, site_url: Callable[[str], str | None]) -> str:
    """Return Markdown whose links lead to the site; links to files that are not served become text."""
    return LINK.sub(lambda link: f"[{link[1]}]({url})" if (url := site_url(link[2])) else link[1], text)


def resolve(target: str, *, folder: str) -> str:
    """Return the path in docs/ of the file that a link in a folder of docs/ leads to."""
    return posixpath.normpath(posixpath.join(folder, target))


def is_absolute(target: str) -> bool:
    return target.startswith(("#", "/", "http://", "https://", "mailto:"))


def pairs(tokens: list[Token]) -> Iterator[tuple[Token, Token]]:
    """Yield each token with the next one; the last with itself."""
    return zip(tokens, [*tokens[1:], *tokens[-1:]], strict=True)


def _rewrite_links_of(token: Token, site_url: Callable[[str], str | None]) -> None:
    is_removed = False
    for child in token.children or ():
        if child.type == "link_open":
            url = site_url(str(child.attrGet("href")))
            child.attrSet("href", url or "")
            is_removed = url is None
        if child.type == "image":
            child.attrSet("src", site_url(str(child.attrGet("src"))) or "")
        if child.type in {"link_open", "link_close"} and is_removed:
            child.type, child.tag, child.nesting, child.content = "text", "", 0, ""


def _with_links(children: list[Token], code_url: Callable[[str], str | None]) -> Iterator[Token]:
    is_linked = False
    for child in children:
        if child.type in {"link_open", "link_close"}:
            is_linked = child.type == "link_open"
        url = code_url(child.content) if child.type == "code_inline" and not is_linked else None
        if url:
            yield Token("link_open", "a", 1, attrs={"href": url})
        yield child
        if url:
            yield Token("link_close", "a", -1)


def _mark_empty_header(token: Token, content: Token) -> None:
    """Make an empty header cell of a table a data cell: screen readers would announce a header without a name."""
    if token.type == "th_open" and not content.content:
        token.tag = "td"


def _render_code(renderer: object, tokens: list[Token], index: int, *_: object) -> str:
    """Render a code block; adjacent blocks in different languages form a group, which the page shows as tabs."""
    before = index > 0 and _are_one_group(tokens[index - 1], tokens[index])
    after = index + 1 < len(tokens) and _are_one_group(tokens[index], tokens[index + 1])
    start = '<div class="samples">' if after and not before else ""
    end = "</div>" if before and not after else ""
    return f"{start}{code_block(tokens[index].content, language=tokens[index].info)}{end}\n"


def _are_one_group(first: Token, second: Token) -> bool:
    languages = {token.info for token in (first, second) if token.type == "fence" and token.info in LANGUAGES}
    return len(languages) > 1


def code_block(text: str, *, language: str) -> str:
    label = LANGUAGES.get(language, "")
    return f'<div class="code" data-label="{label}"><pre {FOCUSABLE}><code>{escape(text)}</code></pre></div>'
