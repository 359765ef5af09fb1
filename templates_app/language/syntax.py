"""Template compiler: builds the syntax tree of a template source, once per version (docs/decisions/0012)."""

from collections.abc import Callable
from dataclasses import dataclass, field

from core.lib.coded_texts import CodedText
from templates_app.language.errors import TemplateSyntaxError, syntax_error
from templates_app.language.names import THIS, VariablePath
from templates_app.language.nodes import (
    Block,
    CompareNode,
    CompiledTemplate,
    EachNode,
    IfNode,
    Node,
    ValueNode,
    WithNode,
)
from templates_app.language.scanner import COMPARISONS, Tag, TagKind, scan

__all__ = ["CompiledTemplate", "TemplateSyntaxError", "compile_template"]

MAX_NESTING = 50


def compile_template(source: str) -> CompiledTemplate:
    """Return the compiled template. Raises only TemplateSyntaxError, for any text."""
    builder = _Builder(source)
    for piece in scan(source):
        if isinstance(piece, str):
            builder.add_text(piece)
        else:
            TAG_HANDLERS[piece.kind](builder, piece)
    return builder.finish()


@dataclass
class _Section:
    """An open section: the current branch, and the first branch after an {{else}}.

    loops: the number of enclosing {{#each}} items.
    scopes: the number with the enclosing {{#with}} values.
    is_chained: opened by an {{else if}}, and closed with the section before it.
    """

    tag: Tag
    loops: int
    scopes: int = 0
    is_chained: bool = False
    texts: list[str] = field(default_factory=list)
    nodes: list[str | Node] = field(default_factory=list)
    cost: int = 1
    size_chars: int = 0
    first: Block | None = None

    def add(self, node: Node) -> None:
        self._join_texts()
        self.nodes.append(node)
        operands = node.operands if isinstance(node, CompareNode) else (node.path,)
        # The head may be looked up in every enclosing scope; each further segment of the path is one step.
        paths = [operand for operand in operands if isinstance(operand, VariablePath)]
        self.cost += 1 + sum(self.scopes + len(path.rest) for path in paths)

    def finish_branch(self) -> Block:
        """Return the finished branch and start the next one."""
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
    """The stack of open sections while the source is read; the whole template is the first."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.variables: dict[str, None] = {}
        self.open = [_Section(Tag(TagKind.OPEN, 0), loops=0)]

    def add_text(self, text: str) -> None:
        self.open[-1].texts.append(text)

    def add_value(self, tag: Tag) -> None:
        self._use_name(tag, tag.path)
        self.open[-1].add(ValueNode(tag.path, tag.default, is_raw=tag.kind is TagKind.RAW_VALUE))

    def open_section(self, tag: Tag) -> None:
        if len(self.open) > MAX_NESTING:
            raise self._error(tag, CodedText("templates_app.nested_too_deep", limit=MAX_NESTING))
        for operand in tag.operands or (tag.path,):
            if isinstance(operand, VariablePath):
                self._use_name(tag, operand)
        outer = self.open[-1]
        section = _Section(
            tag,
            loops=outer.loops + (tag.section == "each"),
            scopes=outer.scopes + (tag.section in SCOPED),
            is_chained=tag.kind is TagKind.ELSE,
        )
        self.open.append(section)

    def begin_else(self, tag: Tag) -> None:
        """Begin the other branch; with a condition, it is a section within it."""
        self._begin_branch(tag)
        if tag.section:
            self.open_section(tag)

    def _begin_branch(self, tag: Tag) -> None:
        section = self.open[-1]
        if len(self.open) == 1:
            raise self._error(tag, CodedText("templates_app.else_outside"))
        if section.first is not None:
            raise self._error(tag, CodedText("templates_app.else_twice", tag=_opening(section.tag)))
        section.first = section.finish_branch()
        # The {{else}} branch of an {{#each}} has no item.
        section.loops, section.scopes = self.open[-2].loops, self.open[-2].scopes

    def close_section(self, tag: Tag) -> None:
        while self.open[-1].is_chained:
            self._close_innermost()
        section = self.open[-1]
        if len(self.open) == 1:
            raise self._error(tag, CodedText("templates_app.section_not_open", tag=_closing(tag)))
        if section.tag.section != tag.section:
            opening = _opening(section.tag)
            raise self._error(tag, CodedText("templates_app.other_section_open", tag=_closing(tag), opening=opening))
        self._close_innermost()

    def _close_innermost(self) -> None:
        section = self.open.pop()
        last = section.finish_branch()
        branches = (last, Block()) if section.first is None else (section.first, last)
        self.open[-1].add(_section_node(section.tag, *branches))

    def finish(self) -> CompiledTemplate:
        section = self.open[-1]
        if len(self.open) > 1:
            tags = {"tag": _opening(section.tag), "end": _closing(section.tag)}
            raise self._error(section.tag, CodedText("templates_app.section_not_closed", **tags))
        return CompiledTemplate(section.finish_branch(), tuple(self.variables))

    def _use_name(self, tag: Tag, path: VariablePath) -> None:
        if path.is_loop_name and not self.open[-1].loops:
            raise self._error(tag, CodedText("templates_app.loop_name_outside", name=path))
        if not path.is_loop_name and path.head != THIS:
            self.variables[str(path)] = None

    def _error(self, tag: Tag, message: str) -> TemplateSyntaxError:
        return syntax_error(self.source, tag.offset, message)


def _opening(tag: Tag) -> str:
    sign, named = "else " if tag.kind is TagKind.ELSE else "#", "…" if tag.operands else tag.path
    return f"{{{{{sign}{tag.section} {named}}}}}"


def _closing(tag: Tag) -> str:
    return f"{{{{/{tag.section}}}}}"


def _section_node(tag: Tag, first: Block, second: Block) -> Node:
    """Return the node of a section.

    first: the branch before its {{else}}.
    second: the one after it.
    """
    if tag.section in COMPARISONS:
        return CompareNode(tag.section, tag.operands, first, second)
    return SECTION_NODES[tag.section](tag.path, first, second)


def _unless(path: VariablePath, body: Block, otherwise: Block) -> IfNode:
    return IfNode(path, when_true=otherwise, when_false=body)


TAG_HANDLERS: dict[TagKind, Callable[[_Builder, Tag], None]] = {
    TagKind.VALUE: _Builder.add_value,
    TagKind.RAW_VALUE: _Builder.add_value,
    TagKind.COMMENT: lambda _builder, _tag: None,
    TagKind.OPEN: _Builder.open_section,
    TagKind.ELSE: _Builder.begin_else,
    TagKind.CLOSE: _Builder.close_section,
}
SECTION_NODES: dict[str, Callable[[VariablePath, Block, Block], Node]] = {
    "if": IfNode,
    "unless": _unless,
    "with": WithNode,
    "each": EachNode,
}
# Sections whose names are looked up in their value first.
SCOPED = ("with", "each")
