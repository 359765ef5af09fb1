"""Template rendering with the data of one recipient.

Rules for values:
- Strings are written as they are, numbers, true and false as in JSON, null as nothing, lists and objects as compact
  JSON. Null is a value: it is not reported as missing.
- In HTML, `{{ }}` always escapes, including defaults; `{{{ }}}` never does.
- A name is looked up in the value of the innermost {{#with}} or item of the innermost {{#each}}, if that is an
  object, then outwards. The first scope with the head of the path wins. `this` is that value or item or, outside of
  both, the whole data. `../` leaves a scope first, `@root` all of them.
- Values are equal if they are written as the same text; numbers are compared as numbers. A list or an object is equal
  to nothing.
- Values are data: tags inside a value are never interpreted.
- A partial has the data of its place. Its parameters are a scope within that of the place; one without a value hides
  the outer names like any other.
"""

import html
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

from core.lib.coded_texts import CodedText
from templates_app.language.formats import format_value
from templates_app.language.names import VariablePath
from templates_app.language.nodes import (
    Block,
    CompareNode,
    CompiledTemplate,
    EachNode,
    FormatNode,
    IfNode,
    Literal,
    Operand,
    PartialNode,
    ValueNode,
    WithNode,
)

MAX_BYTES = 2 * 1024 * 1024
# The most expensive known template takes less than 0.2 s for this; ten values in each of 10,000 rows need 210,000.
MAX_STEPS = 250_000
# All renderings of one request together: about two seconds (docs/decisions/0079).
MAX_REQUEST_STEPS = 2_500_000
# Characters that take as long as one step: of the output with its escaping, and of values written as JSON.
CHARS_PER_STEP = 256
JSON_CHARS_PER_STEP = 12
MAX_MISSING = 100
HTML_SPECIALS = re.compile("[&<>\"']")
# C0, DEL, C1 and the separators that some programs treat as line ends.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# A number written as text, and the largest number that is compared.
NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
MAX_NUMBER = 1e300
MISSING: Any = object()


class _Absent:
    """The value of a parameter without one, which unlike MISSING ends the search for a name."""

    def __bool__(self) -> bool:
        return False


ABSENT: Any = _Absent()
# The number of items of a list and of characters of a text, as in Handlebars.
LENGTH = "length"


class OutputTooLarge(ValueError):
    """Raised when the rendered output exceeds MAX_BYTES."""


class RenderTooLong(OutputTooLarge):
    """Raised when rendering takes more than MAX_STEPS steps, regardless of the output size."""


@dataclass(slots=True)
class RenderBudget:
    """The remaining steps of a request. A batch renders up to 1,500 texts, each within MAX_STEPS."""

    steps_left: int = MAX_REQUEST_STEPS

    def take(self, steps: int) -> None:
        self.steps_left -= steps
        if self.steps_left < 0:
            raise RenderTooLong(CodedText("templates_app.request_takes_too_long", limit=f"{MAX_REQUEST_STEPS:,}"))


class RenderMode(Enum):
    HTML = auto()
    TEXT = auto()
    SUBJECT = auto()


@dataclass(frozen=True)
class RenderedText:
    """Rendered text. missing: names without a value or default, as written, in order, without duplicates."""

    text: str
    missing: tuple[str, ...]


def render(
    compiled: CompiledTemplate,
    data: Mapping[str, Any],
    *,
    mode: RenderMode,
    budget: RenderBudget | None = None,
    locale: str | None = None,
) -> RenderedText:
    """Return the rendered template; a subject becomes one line without control characters.

    data: JSON as the API accepts it (nested at most 32 deep).
    budget: shared by all renderings of a request.
    locale: that of numbers and dates; None for English.
    Raises OutputTooLarge, or its subclass RenderTooLong.
    """
    names = data if isinstance(data, dict) else dict(data)
    renderer = _Renderer(escape=ESCAPES[mode], blocks=compiled.blocks, locale=locale)
    renderer.write_block(compiled.body, _Scope(names, {"this": names}, None))
    (budget or RenderBudget()).take(renderer.steps_taken())
    text = FINISHERS[mode]("".join(renderer.pieces))
    # No character takes more than four bytes.
    if len(text) > MAX_BYTES // 4 and len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise _too_large()
    return RenderedText(text, tuple(renderer.missing))


class _Scope(NamedTuple):
    """The names of an item, the loop variables, and the enclosing scope.

    A tuple for speed: one is created for each item.
    """

    names: dict[str, Any]
    loop: dict[str, Any]
    outer: "_Scope | None"


@dataclass(slots=True)
class _Renderer:
    """The output so far, with the remaining characters and steps.

    Characters are counted during rendering: no text has more characters than bytes.
    outer_scopes: the scopes around the partial that is rendered; 0 outside of partials.
    """

    escape: Callable[[str], str]
    blocks: Mapping[str, Block]
    locale: str | None
    pieces: list[str] = field(default_factory=list)
    missing: dict[str, None] = field(default_factory=dict)
    chars_left: int = MAX_BYTES
    steps_left: int = MAX_STEPS
    json_chars: int = 0
    outer_scopes: int = 0

    def steps_taken(self) -> int:
        """Return the steps so far, including those for long outputs and JSON, which have limits in characters."""
        chars = MAX_BYTES - self.chars_left
        return MAX_STEPS - self.steps_left + chars // CHARS_PER_STEP + self.json_chars // JSON_CHARS_PER_STEP

    def write_block(self, block: Block, scope: _Scope) -> None:
        self.steps_left -= block.cost
        if self.outer_scopes:
            self.steps_left -= block.lookups * self.outer_scopes
        self.chars_left -= block.size_chars
        if self.steps_left < 0:
            raise RenderTooLong(CodedText("templates_app.template_takes_too_long", limit=f"{MAX_STEPS:,}"))
        if self.chars_left < 0:
            raise _too_large()
        for node in block.nodes:
            if isinstance(node, str):
                self.pieces.append(node)
            else:
                WRITERS[type(node)](self, node, scope)

    def write_value(self, node: ValueNode, scope: _Scope) -> None:
        value = _look_up(node.path, scope)
        text = value if isinstance(value, str) else self._text_of(value)
        if not text:
            text = self._fallback_text(node, value)
        # Checked before escaping, which turns one character into up to six. Not a method: half of the time of loops is
        # spent here.
        if len(text) <= self.chars_left and not node.is_raw:
            text = self.escape(text)
        self.chars_left -= len(text)
        if self.chars_left < 0:
            raise _too_large()
        self.pieces.append(text)

    def write_format(self, node: FormatNode, scope: _Scope) -> None:
        value = _look_up(node.path, scope)
        argument = None if node.argument is None else _value_of(node.argument, scope)
        text = format_value(node.helper, value, argument, locale=self.locale)
        # A value of another kind is written as without the helper.
        if text is None:
            text = value if isinstance(value, str) else self._text_of(value)
        text = text or self._fallback_text(node, value)
        if len(text) <= self.chars_left and not node.is_raw:
            text = self.escape(text)
        self.chars_left -= len(text)
        if self.chars_left < 0:
            raise _too_large()
        self.pieces.append(text)

    def write_partial(self, node: PartialNode, scope: _Scope) -> None:
        if node.parameters:
            names = {name: _parameter(operand, scope) for name, operand in node.parameters}
            scope = _Scope(names, scope.loop, scope)
        outer = self.outer_scopes
        self.outer_scopes += node.scopes + bool(node.parameters)
        self.write_block(self.blocks[node.name], scope)
        self.outer_scopes = outer

    def write_if(self, node: IfNode, scope: _Scope) -> None:
        is_true = _is_true(_look_up(node.path, scope))
        self.write_block(node.when_true if is_true else node.when_false, scope)

    def write_compare(self, node: CompareNode, scope: _Scope) -> None:
        first, second = (_value_of(operand, scope) for operand in node.operands)
        is_true = COMPARE[node.comparison](self, first, second)
        self.write_block(node.when_true if is_true else node.when_false, scope)

    def write_with(self, node: WithNode, scope: _Scope) -> None:
        value = _look_up(node.path, scope)
        if not _is_true(value):
            self.write_block(node.when_empty, scope)
            return
        names = value if isinstance(value, dict) else {}
        self.write_block(node.body, _Scope(names, {**scope.loop, "this": value}, scope))

    def are_equal(self, first: Any, second: Any) -> bool:
        if isinstance(first, list | dict) or isinstance(second, list | dict):
            return False
        if _is_number(first) and _is_number(second):
            return bool(first == second)
        first, second = (value if isinstance(value, str) else _text_of(value) for value in (first, second))
        self.steps_left -= min(len(first), len(second)) // CHARS_PER_STEP
        return bool(first == second)

    def write_each(self, node: EachNode, scope: _Scope) -> None:
        value = _look_up(node.path, scope)
        if value is MISSING:
            self._note_missing(node.path)
        if not value or not isinstance(value, list | dict):
            self.write_block(node.when_empty, scope)
            return
        last = len(value) - 1
        for index, (key, item) in enumerate(value.items() if isinstance(value, dict) else enumerate(value)):
            loop = {"this": item, "@index": index, "@first": index == 0, "@last": index == last, "@key": key}
            self.write_block(node.body, _Scope(item if isinstance(item, dict) else {}, loop, scope))

    def _text_of(self, value: Any) -> str:
        text = _text_of(value)
        self.json_chars += len(text)
        return text

    def _fallback_text(self, node: ValueNode | FormatNode, value: Any) -> str:
        if node.default is not None:
            return node.default
        if value is MISSING or value is ABSENT:
            self._note_missing(node.path)
        return ""

    def _note_missing(self, path: VariablePath) -> None:
        # A partial may be outside of an {{#each}}.
        if len(self.missing) < MAX_MISSING and not path.is_loop_name:
            self.missing[str(path)] = None


def _look_up(path: VariablePath, scope: _Scope) -> Any:
    """Return the value at a path, or MISSING. Only keys and indexes are followed, never attributes."""
    for _ in range(path.up):
        if scope.outer is None:
            break
        scope = scope.outer
    value = scope.loop.get(path.head, MISSING)
    outer_scope: _Scope | None = scope
    while value is MISSING and outer_scope is not None:
        value = outer_scope.names.get(path.head, MISSING)
        outer_scope = outer_scope.outer
    for segment in path.rest:
        value = _child(value, segment)
    return value


def _child(value: Any, segment: str) -> Any:
    if isinstance(value, dict):
        return value.get(segment, MISSING)
    if isinstance(value, list | str) and segment == LENGTH:
        return len(value)
    if isinstance(value, list) and segment.isdigit() and int(segment) < len(value):
        return value[int(segment)]
    return MISSING


def _is_true(value: Any) -> bool:
    return value is not MISSING and bool(value)


def _value_of(operand: Operand, scope: _Scope) -> Any:
    return operand.value if isinstance(operand, Literal) else _look_up(operand, scope)


def _parameter(operand: Operand, scope: _Scope) -> Any:
    value = _value_of(operand, scope)
    return ABSENT if value is MISSING else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any) -> float:
    """Return a number, also one written as text; for any other value NaN, which is neither more nor less."""
    if isinstance(value, str) and NUMBER.fullmatch(value):
        return float(value)
    return float(value) if _is_number(value) and abs(value) < MAX_NUMBER else math.nan


def _text_of(value: Any) -> str:
    if value is MISSING or value is ABSENT or value is None:
        return ""
    # The same as json.dumps without its overhead; the type of True is bool, so it does not match.
    if type(value) is int:
        return str(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _escape_html(text: str) -> str:
    # Most values need no escaping, and html.escape makes five passes.
    return html.escape(text) if HTML_SPECIALS.search(text) else text


def _unchanged(text: str) -> str:
    return text


def _one_line(text: str) -> str:
    return CONTROLS.sub(" ", text).strip()


def _too_large() -> OutputTooLarge:
    return OutputTooLarge(CodedText("templates_app.output_too_large", limit=f"{MAX_BYTES:,}"))


ESCAPES = {RenderMode.HTML: _escape_html, RenderMode.TEXT: _unchanged, RenderMode.SUBJECT: _unchanged}
FINISHERS = {RenderMode.HTML: _unchanged, RenderMode.TEXT: _unchanged, RenderMode.SUBJECT: _one_line}
COMPARE: dict[str, Callable[[_Renderer, Any, Any], bool]] = {
    "equals": _Renderer.are_equal,
    "notEquals": lambda renderer, first, second: not renderer.are_equal(first, second),
    "greaterThan": lambda _, first, second: _number(first) > _number(second),
    "lessThan": lambda _, first, second: _number(first) < _number(second),
    "and": lambda _, first, second: _is_true(first) and _is_true(second),
    "or": lambda _, first, second: _is_true(first) or _is_true(second),
}
WRITERS: dict[type, Callable[[_Renderer, Any, _Scope], None]] = {
    ValueNode: _Renderer.write_value,
    FormatNode: _Renderer.write_format,
    PartialNode: _Renderer.write_partial,
    IfNode: _Renderer.write_if,
    CompareNode: _Renderer.write_compare,
    WithNode: _Renderer.write_with,
    EachNode: _Renderer.write_each,
}
