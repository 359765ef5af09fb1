"""Compile the source of a template, once per version."""

from collections.abc import Callable
from dataclasses import dataclass, field

from templates_app.language.errors import TemplateSyntaxError, fault
from templates_app.language.names import Path
from templates_app.language.nodes import Block, Choice, Compiled, Loop, Value
from templates_app.language.scanner import Kind, Tag, scan

__all__ = ["Compiled", "TemplateSyntaxError", "compile_template"]

MAX_NESTING = 50


def compile_template(source: str) -> Compiled:
    """Return the compiled template. Raises TemplateSyntaxError and nothing else, for any text."""
    builder = _Builder(source)
    for piece in scan(source):
        if isinstance(piece, str):
            builder.add_text(piece)
        else:
            ACTS[piece.kind](builder, piece)
    return builder.finish()


@dataclass
class _Section:
    """A section still open: the branch being read, and the first one when {{else}} has come.

    loops: how many items are in reach here.
    """

    tag: Tag
    loops: int
    texts: list[str] = field(default_factory=list)
    nodes: list[str | Value | Choice | Loop] = field(default_factory=list)
    cost: int = 1
    size_chars: int = 0
    first: Block | None = None

    def add(self, node: Value | Choice | Loop) -> None:
        self._join_texts()
        self.nodes.append(node)
        # A head may be looked for in every item around it, then each part of the path is a step.
        self.cost += 1 + self.loops + len(node.path.rest)

    def cut(self) -> Block:
        """Return the branch that ends here and begin another."""
        self._join_texts()
        block = Block(tuple(self.nodes), self.cost, self.size_chars)
        self.nodes, self.cost, self.size_chars = [], 1, 0
        return block

    def _join_texts(self) -> None:
        if text := "".join(self.texts):
            self.nodes.append(text)
            self.size_chars += len(text)
        self.texts = []


class _Builder:
    """The sections open at a place of the source, the whole template first."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.variables: dict[str, None] = {}
        self.open = [_Section(Tag(Kind.OPEN, 0), loops=0)]

    def add_text(self, text: str) -> None:
        self.open[-1].texts.append(text)

    def add_value(self, tag: Tag) -> None:
        self._use_name(tag)
        self.open[-1].add(Value(tag.path, tag.default, is_raw=tag.kind is Kind.RAW_VALUE))

    def open_section(self, tag: Tag) -> None:
        if len(self.open) > MAX_NESTING:
            raise self._fault(tag, f"Sections are nested at most {MAX_NESTING} deep.")
        self._use_name(tag)
        self.open.append(_Section(tag, loops=self.open[-1].loops + (tag.section == "each")))

    def begin_else(self, tag: Tag) -> None:
        section = self.open[-1]
        if len(self.open) == 1:
            raise self._fault(tag, "{{else}} stands outside of any section.")
        if section.first is not None:
            raise self._fault(tag, f"The {_opening(section.tag)} of this {{{{else}}}} has one already.")
        section.first = section.cut()
        # The else of an each has no item.
        section.loops = self.open[-2].loops

    def close_section(self, tag: Tag) -> None:
        section = self.open[-1]
        if len(self.open) == 1:
            raise self._fault(tag, f"{{{{/{tag.section}}}}} closes a section that was not opened.")
        if section.tag.section != tag.section:
            raise self._fault(tag, f"{{{{/{tag.section}}}}} stands where {_opening(section.tag)} is still open.")
        self.open.pop()
        last = section.cut()
        branches = (last, Block()) if section.first is None else (section.first, last)
        self.open[-1].add(NODES[tag.section](section.tag.path, *branches))

    def finish(self) -> Compiled:
        section = self.open[-1]
        if len(self.open) > 1:
            word = section.tag.section
            raise self._fault(section.tag, f"{_opening(section.tag)} is not closed: {{{{/{word}}}}} is missing.")
        return Compiled(section.cut(), tuple(self.variables))

    def _use_name(self, tag: Tag) -> None:
        if tag.path.is_of_a_loop and not self.open[-1].loops:
            raise self._fault(tag, f"{tag.path} is known inside of {{{{#each}}}} only.")
        if not tag.path.is_of_a_loop and tag.path.head != "this":
            self.variables[str(tag.path)] = None

    def _fault(self, tag: Tag, message: str) -> TemplateSyntaxError:
        return fault(self.source, tag.at, message)


def _opening(tag: Tag) -> str:
    return f"{{{{#{tag.section} {tag.path}}}}}"


def _unless(path: Path, body: Block, otherwise: Block) -> Choice:
    return Choice(path, when_true=otherwise, when_false=body)


ACTS: dict[Kind, Callable[[_Builder, Tag], None]] = {
    Kind.VALUE: _Builder.add_value,
    Kind.RAW_VALUE: _Builder.add_value,
    Kind.COMMENT: lambda _builder, _tag: None,
    Kind.OPEN: _Builder.open_section,
    Kind.ELSE: _Builder.begin_else,
    Kind.CLOSE: _Builder.close_section,
}
NODES: dict[str, Callable[[Path, Block, Block], Choice | Loop]] = {"if": Choice, "unless": _unless, "each": Loop}
