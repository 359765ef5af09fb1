"""Syntax tree of a compiled template. Its nodes are frozen, so it can be cached."""

from dataclasses import dataclass

from templates_app.language.names import VariablePath


@dataclass(frozen=True, slots=True)
class ValueNode:
    """A `{{name}}` tag.

    is_raw: written with three braces.
    default: text, not yet escaped.
    """

    path: VariablePath
    default: str | None
    is_raw: bool


@dataclass(frozen=True, slots=True)
class Literal:
    """A text, a number, true or false in a comparison."""

    value: str | int | float | bool


Operand = VariablePath | Literal


@dataclass(frozen=True, slots=True)
class IfNode:
    """An `{{#if}}` section, or an `{{#unless}}` section with its branches swapped."""

    path: VariablePath
    when_true: "Block"
    when_false: "Block"


@dataclass(frozen=True, slots=True)
class CompareNode:
    """A section such as `{{#equals a "b"}}`. comparison: its word."""

    comparison: str
    operands: tuple[Operand, ...]
    when_true: "Block"
    when_false: "Block"


@dataclass(frozen=True, slots=True)
class WithNode:
    """A `{{#with}}` section. when_empty: the branch rendered without a value."""

    path: VariablePath
    body: "Block"
    when_empty: "Block"


@dataclass(frozen=True, slots=True)
class EachNode:
    """An `{{#each}}` section. when_empty: the branch rendered when there are no items."""

    path: VariablePath
    body: "Block"
    when_empty: "Block"


@dataclass(frozen=True, slots=True)
class Block:
    """The content of one section branch, or of the whole template. No two texts are adjacent.

    cost: the steps to render it once, at least 1, without the nested sections.
    size_chars: the total length of its texts.
    """

    nodes: "tuple[str | Node, ...]" = ()
    cost: int = 1
    size_chars: int = 0


Node = ValueNode | IfNode | CompareNode | WithNode | EachNode


@dataclass(frozen=True, slots=True)
class CompiledTemplate:
    """A template ready to be rendered as HTML, text or subject.

    variables: the variable names as written, in order and without duplicates, except `this` and the @ names.
    """

    body: Block
    variables: tuple[str, ...]
