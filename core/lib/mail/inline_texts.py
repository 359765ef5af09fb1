"""Inline texts of a message: the parts that a mail program shows as one text (docs/decisions/0310)."""

import html
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from core.lib.mail.mime import MimePart

PLAIN, HTML = "text/plain", "text/html"
ALTERNATIVE, RELATED = "multipart/alternative", "multipart/related"


@dataclass
class TextNode:
    """A text of a message, or a multipart that contains some. kind: its media type."""

    kind: str
    text: str = ""
    nodes: "list[TextNode]" = field(default_factory=list)

    def leaves(self) -> "Iterator[TextNode]":
        """Yield the texts that are not blank, in their order."""
        if self.text and not self.text.isspace():
            yield self
        for node in self.nodes:
            yield from node.leaves()

    def kinds(self) -> set[str]:
        return {leaf.kind for leaf in self.leaves()}

    def shown(self, kind: str) -> "Iterator[TextNode]":
        """Yield the texts that a reader of a kind sees: all, but one kind only of each multipart/alternative."""
        if not self.nodes:
            yield from self.leaves()
        elif self.kind != ALTERNATIVE:
            for node in self.nodes:
                yield from node.shown(kind)
        elif any(node.kinds() == {kind} for node in self.nodes):
            yield from (leaf for leaf in self.leaves() if leaf.kind == kind)
        else:
            for node in [node for node in self.nodes if kind in node.kinds()] or self.nodes:
                yield from node.shown(kind)


class InlineTexts:
    """The texts of a message in the tree of its multiparts, added in the order of its parts."""

    def __init__(self) -> None:
        self._root = TextNode("")
        self._nodes: dict[MimePart | None, TextNode] = {None: self._root}

    def has(self, kind: str) -> bool:
        """Return whether a text of a kind is not blank."""
        return kind in self._root.kinds()

    def accepts(self, part: MimePart) -> bool:
        """Return whether a part without parts is shown as text: it is no attachment, and has no file name.

        The only part of a message and an alternative are shown with a name, too.
        """
        is_nameless = part.parent is None or part.parent.kind == ALTERNATIVE or not part.filename
        return is_nameless and self.is_shown(part)

    def is_shown(self, part: MimePart) -> bool:
        """Return whether a part may be shown as text. Not a further text of a multipart/related: it is for the HTML."""
        if part.kind not in {PLAIN, HTML} or part.disposition == "attachment":
            return False
        is_related = part.parent is not None and part.parent.kind == RELATED
        return not (is_related and part.content_id and self._nodes[part.parent].kinds())

    def add(self, part: MimePart, text: str = "") -> None:
        """Add a text, or a multipart before its parts."""
        node = self._nodes[part] = TextNode(part.kind, text)
        self._nodes[part.parent].nodes.append(node)

    def shown(self, kind: str) -> list[TextNode]:
        """Return the texts that a reader of a kind sees, with those of the other kind that have no counterpart."""
        return list(self._root.shown(kind))

    def blank(self, kind: str) -> str:
        """Return the text of a kind of which all texts are blank."""
        return next((node.text for node in self._nodes.values() if node.kind == kind), "")


def join_texts(texts: Iterable[TextNode], *, kind: str, convert: Callable[[str], str], limit: int) -> str:
    """Return texts as one of a kind, each beginning in a new line.

    convert: makes a text of this kind from one of the other kind.
    limit: the number of characters behind which texts are left out.
    """
    pieces: list[str] = []
    size = 0
    for node in texts:
        if size > limit:
            break
        text = node.text if node.kind == kind else convert(node.text)
        pieces += (BREAKS[kind](pieces[-1]), text) if pieces else (text,)
        size += len(text)
    return "".join(pieces)


def text_to_html(text: str) -> str:
    """Return a text as HTML that looks like it."""
    return "<div>" + html.escape(text.strip("\n"), quote=False).replace("\n", "<br>\n") + "</div>"


def _line_end_after(text: str) -> str:
    return "" if text.endswith("\n") else "\n"


# In front of a further text.
BREAKS: Mapping[str, Callable[[str], str]] = {PLAIN: _line_end_after, HTML: lambda _: "<br>\n"}
