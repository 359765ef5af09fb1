"""Sample data: a value for each variable of a template, for previews and for authors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from templates_app.language.names import THIS, VariablePath
from templates_app.language.nodes import (
    Block,
    CompareNode,
    EachNode,
    FormatNode,
    IfNode,
    Literal,
    Node,
    PartialNode,
    ValueNode,
)
from templates_app.language.rendering import LENGTH
from templates_app.language.syntax import CompiledTemplate

# Objects and lists within each other. The API accepts 32.
MAX_DEPTH = 30
TEXTS = ("one", "two")
# Values that the helpers can read.
FORMATTED: dict[str, str | float] = {"formatNumber": 1234.5, "formatCurrency": 99.9, "formatDate": "2026-11-30"}

Blocks = Mapping[str, Block]


def sample_data(*templates: CompiledTemplate, suffix: str = "") -> dict[str, Any]:
    """Return data with which the templates render all their values and the first branch of each section.

    suffix: of each text, which is the name of its variable.
    Loops have two items; those within another loop have one, so that the size stays linear.
    """
    data = _Shape()
    for template in templates:
        _read(template.body, (data,), template.blocks)
    return {name: _value(shape, name + suffix, suffix) for name, shape in data.names.items()}


@dataclass(slots=True)
class _Shape:
    """The uses of one value: its names if it is an object, its items if it is a list.

    literal: the value that it is compared with.
    """

    names: "dict[str, _Shape]" = field(default_factory=dict)
    items: "_Shape | None" = None
    is_written: bool = False
    is_condition: bool = False
    literal: Literal | None = None


class _ParameterNames(dict[str, _Shape]):
    """The parameters of a partial; other names are those of the place."""

    def __init__(self, parameters: Mapping[str, _Shape], outer: dict[str, _Shape]) -> None:
        super().__init__(parameters)
        self.outer = outer

    def setdefault(self, name: str, shape: _Shape) -> _Shape:
        return self[name] if name in self else self.outer.setdefault(name, shape)


def _read(block: Block, scopes: tuple[_Shape, ...], blocks: Blocks) -> None:
    """Add the values of a block.

    scopes: the data, and the value or item of each enclosing section.
    blocks: the texts of partials.
    """
    for node in block.nodes:
        if not isinstance(node, str):
            _read_node(node, scopes, blocks)


def _read_node(node: Node, scopes: tuple[_Shape, ...], blocks: Blocks) -> None:
    if isinstance(node, CompareNode):
        _read_comparison(node, scopes, blocks)
        return
    if isinstance(node, PartialNode):
        _read_partial(node, scopes, blocks)
        return
    shape = _find(node.path, scopes)
    if isinstance(node, FormatNode):
        shape.literal = shape.literal or Literal(FORMATTED[node.helper])
        if isinstance(node.argument, VariablePath):
            _find(node.argument, scopes).is_written = True
        return
    if isinstance(node, ValueNode):
        shape.is_written = True
        return
    shape.is_condition = True
    if isinstance(node, IfNode):
        _read(node.when_true, scopes, blocks)
        _read(node.when_false, scopes, blocks)
        return
    if isinstance(node, EachNode):
        shape.items = shape.items or _Shape()
    _read(node.body, (*scopes, shape.items if isinstance(node, EachNode) and shape.items else shape), blocks)
    _read(node.when_empty, scopes, blocks)


def _read_partial(node: PartialNode, scopes: tuple[_Shape, ...], blocks: Blocks) -> None:
    if node.name not in blocks:
        return
    if node.parameters:
        parameters = {
            name: _find(operand, scopes) if isinstance(operand, VariablePath) else _Shape()
            for name, operand in node.parameters
        }
        scopes = (*scopes, _Shape(names=_ParameterNames(parameters, scopes[-1].names)))
    _read(blocks[node.name], scopes, blocks)


def _read_comparison(node: CompareNode, scopes: tuple[_Shape, ...], blocks: Blocks) -> None:
    literal = next((operand for operand in node.operands if isinstance(operand, Literal)), None)
    for operand in node.operands:
        if isinstance(operand, VariablePath):
            shape = _find(operand, scopes)
            shape.literal = shape.literal or literal
            shape.is_condition = True
    _read(node.when_true, scopes, blocks)
    _read(node.when_false, scopes, blocks)


def _find(path: VariablePath, scopes: tuple[_Shape, ...]) -> _Shape:
    """Return the shape at a path, added if it is new. That of a loop name belongs to nothing."""
    if path.is_loop_name:
        return _Shape()
    shape = scopes[max(len(scopes) - 1 - path.up, 0)]
    names = path.rest if path.head == THIS else (path.head, *path.rest)
    for name in names[:-1] if names[-1:] == (LENGTH,) else names:
        shape = shape.names.setdefault(name, _Shape())
    return shape


def _value(shape: _Shape, text: str, suffix: str, *, depth: int = 1, is_item: bool = False) -> Any:
    """Return a value.

    depth: the objects and lists around it.
    is_item: whether a list is one of them.
    """
    if depth < MAX_DEPTH and shape.items:
        if not (shape.items.names or shape.items.items):
            return list(TEXTS)
        item = _value(shape.items, text, suffix, depth=depth + 1, is_item=True)
        return [item] if is_item else [item, item]
    if depth < MAX_DEPTH and shape.names:
        return {
            name: _value(inner, name + suffix, suffix, depth=depth + 1, is_item=is_item)
            for name, inner in shape.names.items()
        }
    if shape.literal:
        return shape.literal.value
    return True if shape.is_condition and not shape.is_written else text
