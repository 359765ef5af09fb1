"""Syntax tree of a compiled template. Its nodes are frozen, so it can be cached."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
class FormatNode:
    """A tag such as `{{formatDate x "long"}}`: a value in the form of the locale.

    path: the value.
    argument: the currency, or the style of a date; None for a number.
    """

    helper: str
    path: VariablePath
    argument: Operand | None
    default: str | None
    is_raw: bool


@dataclass(frozen=True, slots=True)
class PartialNode:
    """A `{{> name}}` tag, or the content of a layout.

    parameters: names with their values, which the partial has besides the data of the place.
    scopes: the enclosing {{#each}} and {{#with}} sections of the same text.
    """

    name: str
    parameters: tuple[tuple[str, Operand], ...] = ()
    scopes: int = 0


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
    lookups: the names in it; in a partial, each takes another step for each scope of the place.
    size_chars: the total length of its texts.
    """

    nodes: "tuple[str | Node, ...]" = ()
    cost: int = 1
    size_chars: int = 0
    lookups: int = 0


Node = ValueNode | FormatNode | PartialNode | IfNode | CompareNode | WithNode | EachNode


@dataclass(frozen=True, slots=True)
class PartialUse:
    """The uses of a partial in one text. offset: the position of the first one."""

    count: int
    offset: int


@dataclass(frozen=True, slots=True)
class CompiledTemplate:
    """A template ready to be rendered as HTML, text or subject.

    variables: the variable names as written, in order and without duplicates, except `this` and the @ names.
    partials: the partials that it names itself.
    blocks: the texts of all partials that are inserted; empty until the template is linked.
    """

    body: Block
    variables: tuple[str, ...]
    partials: Mapping[str, PartialUse] = field(default_factory=dict, hash=False)
    blocks: Mapping[str, Block] = field(default_factory=dict, hash=False)
