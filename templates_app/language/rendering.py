"""Render a compiled template with the data of one recipient.

The rules of the values:
- strings stand as they are, numbers as JSON writes them, true and false as words, null as nothing;
  lists and objects as compact JSON. Null is a value: it is not reported as missing.
- In HTML `{{ }}` escapes whatever it writes, a default included; `{{{ }}}` never does.
- A bare name is looked for in the item of the innermost each, if that is an object, then outwards. The first
  scope that has the head of a path decides; `this` is the item or, outside of any each, the whole data.
- Values are data: what stands in them is never read as a tag.
"""

import html
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

from templates_app.language.names import Path
from templates_app.language.nodes import Block, Choice, Compiled, Loop, Value

MAX_BYTES = 2 * 1024 * 1024
# The costliest template known takes less than 0.2 s for them; ten values in each of 10,000 rows need 210,000.
MAX_STEPS = 250_000
MAX_MISSING = 100
HTML_SPECIALS = re.compile("[&<>\"']")
# C0, DEL, C1 and the separators that some programs take for line ends.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
MISSING: Any = object()


class OutputTooLarge(ValueError):
    """Raised when a template makes more of its data than an email may hold."""


class RenderTooLong(OutputTooLarge):
    """Raised when sections ask for more work than any email needs, whatever they write."""


class Mode(Enum):
    HTML = auto()
    TEXT = auto()
    SUBJECT = auto()


@dataclass(frozen=True)
class Rendered:
    """The text, and the names that had neither a value nor a default: as written, in order, each once.

    pieces: what the text was put together of; escaped: those that are values, escaped for the mode.
    """

    text: str
    missing: tuple[str, ...]
    pieces: Sequence[str]
    escaped: Sequence[int]


def render(compiled: Compiled, data: Mapping[str, Any], *, mode: Mode) -> Rendered:
    """Return the rendered template; a subject becomes one line without control characters.

    data: JSON as the API lets it through (nested at most 32 deep).
    Raises OutputTooLarge, or RenderTooLong, the kind of it that is about steps.
    """
    names = data if isinstance(data, dict) else dict(data)
    sheet = _Sheet(escape=ESCAPES[mode])
    sheet.write_block(compiled.body, _Scope(names, {"this": names}, None))
    text = FINISHES[mode]("".join(sheet.pieces))
    # No character takes more than four bytes.
    if len(text) > MAX_BYTES // 4 and len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise _too_large()
    return Rendered(text, tuple(sheet.missing), sheet.pieces, sheet.escaped)


class _Scope(NamedTuple):
    """The names of an item, what the loop itself knows of it, and the scope around it.

    A tuple, for one is made for every item.
    """

    names: dict[str, Any]
    loop: dict[str, Any]
    outer: "_Scope | None"


@dataclass(slots=True)
class _Sheet:
    """What is written so far, and how many characters and steps are left.

    Characters are counted while writing: no text has more of them than bytes.
    """

    escape: Callable[[str], str]
    pieces: list[str] = field(default_factory=list)
    escaped: list[int] = field(default_factory=list)
    missing: dict[str, None] = field(default_factory=dict)
    room_chars: int = MAX_BYTES
    steps: int = MAX_STEPS

    def write_block(self, block: Block, scope: _Scope) -> None:
        self.steps -= block.cost
        self.room_chars -= block.size_chars
        if self.steps < 0:
            raise RenderTooLong(f"The template takes more than {MAX_STEPS:,} steps to render with this data.")
        if self.room_chars < 0:
            raise _too_large()
        for node in block.nodes:
            if isinstance(node, str):
                self.pieces.append(node)
            else:
                WRITERS[type(node)](self, node, scope)

    def write_value(self, node: Value, scope: _Scope) -> None:
        value = _find(node.path, scope)
        text = value if isinstance(value, str) else _text_of(value)
        if not text:
            text = self._stand_in(node, value)
        # Looked at before escaping, which makes up to six characters of one.
        if len(text) <= self.room_chars and not node.is_raw:
            text = self.escape(text)
            self.escaped.append(len(self.pieces))
        self.room_chars -= len(text)
        if self.room_chars < 0:
            raise _too_large()
        self.pieces.append(text)

    def write_choice(self, node: Choice, scope: _Scope) -> None:
        value = _find(node.path, scope)
        is_true = value is not MISSING and bool(value)
        self.write_block(node.when_true if is_true else node.when_false, scope)

    def write_loop(self, node: Loop, scope: _Scope) -> None:
        value = _find(node.path, scope)
        if value is MISSING:
            self._note_missing(node.path)
        if not value or not isinstance(value, list | dict):
            self.write_block(node.when_empty, scope)
            return
        last = len(value) - 1
        for index, (key, item) in enumerate(_entries(value)):
            loop = {"this": item, "@index": index, "@first": index == 0, "@last": index == last, "@key": key}
            self.write_block(node.body, _Scope(item if isinstance(item, dict) else {}, loop, scope))

    def _stand_in(self, node: Value, value: Any) -> str:
        if node.default is not None:
            return node.default
        if value is MISSING:
            self._note_missing(node.path)
        return ""

    def _note_missing(self, path: Path) -> None:
        if len(self.missing) < MAX_MISSING:
            self.missing[str(path)] = None


def _find(path: Path, scope: _Scope) -> Any:
    """Return what a path leads to, or MISSING. Keys and indexes only: attributes are out of reach."""
    value = scope.loop.get(path.head, MISSING)
    around: _Scope | None = scope
    while value is MISSING and around is not None:
        value = around.names.get(path.head, MISSING)
        around = around.outer
    for segment in path.rest:
        value = _part(value, segment)
    return value


def _part(value: Any, segment: str) -> Any:
    if isinstance(value, dict):
        return value.get(segment, MISSING)
    if isinstance(value, list) and segment.isdigit() and int(segment) < len(value):
        return value[int(segment)]
    return MISSING


def _entries(value: list[Any] | dict[str, Any]) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, dict) else enumerate(value)


def _text_of(value: Any) -> str:
    if value is MISSING or value is None:
        return ""
    # What json.dumps would write, without its set-up; True is an int, but not of this type.
    if type(value) is int:
        return str(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _escape_html(text: str) -> str:
    # Most values have nothing to escape; html.escape goes over them five times.
    return html.escape(text) if HTML_SPECIALS.search(text) else text


def _as_it_is(text: str) -> str:
    return text


def _one_line(text: str) -> str:
    return CONTROLS.sub(" ", text).strip()


def _too_large() -> OutputTooLarge:
    return OutputTooLarge(f"The rendered template is larger than {MAX_BYTES:,} bytes.")


ESCAPES = {Mode.HTML: _escape_html, Mode.TEXT: _as_it_is, Mode.SUBJECT: _as_it_is}
FINISHES = {Mode.HTML: _as_it_is, Mode.TEXT: _as_it_is, Mode.SUBJECT: _one_line}
WRITERS: dict[type, Callable[[_Sheet, Any, _Scope], None]] = {
    Value: _Sheet.write_value,
    Choice: _Sheet.write_choice,
    Loop: _Sheet.write_loop,
}
