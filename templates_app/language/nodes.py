"""A compiled template: what the compiler makes and the renderer walks through. Frozen, so it can be cached."""

from dataclasses import dataclass

from templates_app.language.names import Path


@dataclass(frozen=True, slots=True)
class Value:
    """A tag that writes; is_raw for three braces. The default is text, not yet escaped."""

    path: Path
    default: str | None
    is_raw: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """An if; an unless is one with its branches exchanged."""

    path: Path
    when_true: "Block"
    when_false: "Block"


@dataclass(frozen=True, slots=True)
class Loop:
    """An each, with what is written when there is nothing to walk through."""

    path: Path
    body: "Block"
    when_empty: "Block"


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two tags of a section, or the whole template; no two texts are neighbours.

    cost: the steps of writing it once, at least 1; those of the sections inside are their own.
    size_chars: the length of its texts.
    """

    nodes: tuple[str | Value | Choice | Loop, ...] = ()
    cost: int = 1
    size_chars: int = 0


@dataclass(frozen=True, slots=True)
class Compiled:
    """A template ready to be rendered as HTML, text or subject.

    variables: the names it mentions, as written, in order, each once; without `this` and the @ names.
    """

    body: Block
    variables: tuple[str, ...]
