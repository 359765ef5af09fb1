"""Code samples of the documentation, for the pages of the dashboard that show them beside a secret."""

import functools
import itertools
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from console.documentation.code_samples import CodeSample
from console.documentation.pages import directory


@functools.cache
def read_samples(name: str, *, section: str) -> tuple[CodeSample, ...]:
    """Return the code of a section of docs/<name>.md, the first block under each of its subsections."""
    tokens = MarkdownIt("commonmark").parse((directory() / f"{name}.md").read_text(encoding="utf-8"))
    samples: dict[str, str] = {}
    for language, code in _blocks(tokens, section):
        samples.setdefault(language, code)
    return tuple(CodeSample(language, code) for language, code in samples.items())


def _blocks(tokens: list[Token], section: str) -> Iterator[tuple[str, str]]:
    headings = {"h2": "", "h3": ""}
    for token, following in itertools.pairwise(tokens):
        if token.type == "heading_open" and token.tag in headings:
            headings[token.tag] = following.content
        elif token.type == "fence" and headings["h2"] == section:
            yield headings["h3"], token.content
