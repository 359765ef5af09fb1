"""Template compiler: builds the syntax tree of a template source, once per version (docs/decisions/0012)."""

from collections.abc import Callable
from dataclasses import dataclass, field

from core.lib.coded_texts import CodedText
from templates_app.language.errors import TemplateSyntaxError, syntax_error
from templates_app.language.formats import FORMAT_STEPS
from templates_app.language.names import THIS, VariablePath
from templates_app.language.nodes import (
    Block,
    CompareNode,
    CompiledTemplate,
    EachNode,
    FormatNode,
    IfNode,
    Node,
    Operand,
    PartialNode,
    PartialUse,
    ValueNode,
    WithNode,
)
from templates_app.language.scanner import COMPARISONS, Tag, TagKind, scan

__all__ = ["CompiledTemplate", "TemplateSyntaxError", "compile_layout", "compile_partial", "compile_template"]

MAX_NESTING = 50
# In a layout or partial: all of them together are rendered within the recursion limit of Python.
MAX_PART_NESTING = 20
# The name of a template's own text, which no partial has.
CONTENT = "@content"


def compile_template(source: str) -> CompiledTemplate:
    """Return the compiled template. Raises only TemplateSyntaxError, for any text."""
    return _compile(_Builder(source))


def compile_partial(source: str) -> CompiledTemplate:
    """Return a compiled text of a partial, whose sections may be nested less deep. Raises TemplateSyntaxError.

    Its place may be in an {{#each}}, so that it may use the names of one.
    """
    return _compile(_Builder(source, max_nesting=MAX_PART_NESTING, loops=1))


def compile_layout(source: str) -> CompiledTemplate:
    """Return a compiled text of a layout, which has `{{{content}}}` once. Raises TemplateSyntaxError."""
    builder = _Builder(source, max_nesting=MAX_PART_NESTING, content_tag="content")
    compiled = _compile(builder)
    if builder.content_offset is None:
        raise syntax_error(source, 0, CodedText("templates_app.content_missing"))
    return compiled


def _compile(builder: "_Builder") -> CompiledTemplate:
    source = builder.source
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
    lookups: int = 0
    first: Block | None = None

    def add(self, node: Node) -> None:
        self._join_texts()
        self.nodes.append(node)
        # The head may be looked up in every enclosing scope; each further segment of the path is one step.
        paths = [operand for operand in _operands(node) if isinstance(operand, VariablePath)]
        self.cost += 1 + sum(self.scopes + len(path.rest) for path in paths)
        self.cost += FORMAT_STEPS * isinstance(node, FormatNode)
        self.lookups += len(paths)

    def finish_branch(self) -> Block:
        """Return the finished branch and start the next one."""
        self._join_texts()
        block = Block(tuple(self.nodes), self.cost, self.size_chars, self.lookups)
        self.nodes, self.cost, self.size_chars, self.lookups = [], 1, 0, 0
        return block

    def _join_texts(self) -> None:
        if text := "".join(self.texts):
            self.nodes.append(text)
            self.size_chars += len(text)
        self.texts = []


class _Builder:
    """The stack of open sections while the source is read; the whole template is the first.

    content_tag: the name in three braces that is the place of a template's text.
    content_offset: its position, once it was found.
    """

    def __init__(self, source: str, *, max_nesting: int = MAX_NESTING, content_tag: str = "", loops: int = 0) -> None:
        self.source = source
        self.max_nesting = max_nesting
        self.content_tag = content_tag
        self.content_offset: int | None = None
        self.variables: dict[str, None] = {}
        self.partials: dict[str, PartialUse] = {}
        self.open = [_Section(Tag(TagKind.OPEN, 0), loops=loops)]

    def add_text(self, text: str) -> None:
        self.open[-1].texts.append(text)

    def add_value(self, tag: Tag) -> None:
        is_raw = tag.kind is TagKind.RAW_VALUE
        if is_raw and not tag.name and str(tag.path) == self.content_tag:
            self._add_content(tag)
            return
        for operand in (tag.path, *tag.operands):
            if isinstance(operand, VariablePath):
                self._use_name(tag, operand)
        if tag.name:
            self.open[-1].add(FormatNode(tag.name, tag.path, next(iter(tag.operands), None), tag.default, is_raw))
        else:
            self.open[-1].add(ValueNode(tag.path, tag.default, is_raw))

    def add_partial(self, tag: Tag) -> None:
        for _, operand in tag.parameters:
            if isinstance(operand, VariablePath):
                self._use_name(tag, operand)
        use = self.partials.get(tag.name, PartialUse(0, tag.offset))
        self.partials[tag.name] = PartialUse(use.count + 1, use.offset)
        self.open[-1].add(PartialNode(tag.name, tag.parameters, self.open[-1].scopes))

    def _add_content(self, tag: Tag) -> None:
        if self.content_offset is not None:
            raise self._error(tag, CodedText("templates_app.content_twice"))
        self.content_offset = tag.offset
        self.open[-1].add(PartialNode(CONTENT, (), self.open[-1].scopes))

    def open_section(self, tag: Tag) -> None:
        if len(self.open) > self.max_nesting:
            raise self._error(tag, CodedText("templates_app.nested_too_deep", limit=self.max_nesting))
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
        return CompiledTemplate(section.finish_branch(), tuple(self.variables), self.partials)

    def _use_name(self, tag: Tag, path: VariablePath) -> None:
        if path.is_loop_name and not self.open[-1].loops:
            raise self._error(tag, CodedText("templates_app.loop_name_outside", name=path))
        if not path.is_loop_name and path.head != THIS:
            self.variables[str(path)] = None

    def _error(self, tag: Tag, message: str) -> TemplateSyntaxError:
        return syntax_error(self.source, tag.offset, message)


def _operands(node: Node) -> tuple[Operand | None, ...]:
    """Return the operands of a tag, whose names are looked up."""
    if isinstance(node, CompareNode):
        return node.operands
    if isinstance(node, PartialNode):
        return tuple(operand for _, operand in node.parameters)
    return (node.path, node.argument) if isinstance(node, FormatNode) else (node.path,)


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
    TagKind.PARTIAL: _Builder.add_partial,
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
