"""Variable names in tags: `user.name`, `items.0`, `this.price`, `@index`, `../name`, `@root.name`."""

import re
from dataclasses import dataclass

from core.lib.coded_texts import CodedText

MAX_LENGTH = 255
MAX_SEGMENTS = 20
# Names available in each iteration of {{#each}}. They never clash with data: no path can reach a key with an @.
LOOP_NAMES = ("@index", "@first", "@last", "@key")
PARENTS = re.compile(r"(?:\.\./)+(?:\.\.\Z)?|\.\.\Z")
ROOT = "@root"
THIS = "this"


class InvalidName(ValueError):
    """Raised for a text that is not a dotted name, with a message for the template's author."""


@dataclass(frozen=True, slots=True)
class VariablePath:
    """A dotted name. The head is looked up in the scopes, the rest inside the value of the head.

    up: the number of scopes to leave first; MAX_SEGMENTS of them lead to the data.
    """

    head: str
    rest: tuple[str, ...] = ()
    up: int = 0

    @property
    def is_loop_name(self) -> bool:
        return self.head.startswith("@")

    def __str__(self) -> str:
        """Return the name without the scopes to leave: the variable that the data must have."""
        return ".".join((self.head, *self.rest))


def parse_path(text: str) -> VariablePath:
    """Parse a dotted name. Raises InvalidName."""
    if len(text) > MAX_LENGTH:
        raise InvalidName(CodedText("templates_app.name_too_long", limit=MAX_LENGTH))
    if text == ROOT or text.startswith(f"{ROOT}."):
        return _outer_path(text[len(ROOT) + 1 :], up=MAX_SEGMENTS)
    if parents := PARENTS.match(text):
        return _outer_path(text[parents.end() :], up=parents[0].count(".."))
    if text in LOOP_NAMES:
        return VariablePath(text)
    if text.startswith("@"):
        raise InvalidName(CodedText("templates_app.loop_names", names=", ".join((*LOOP_NAMES, ROOT))))
    head, *rest = text.split(".")
    if len(rest) >= MAX_SEGMENTS:
        raise InvalidName(CodedText("templates_app.name_segments", limit=MAX_SEGMENTS))
    if not all(map(is_segment, (head, *rest))):
        raise InvalidName(CodedText("templates_app.not_a_variable", text=repr(text[:60])))
    return VariablePath(head, tuple(rest))


def _outer_path(text: str, *, up: int) -> VariablePath:
    """Return a path that is looked up in an outer scope. Raises InvalidName."""
    path = parse_path(text or THIS)
    if path.is_loop_name or path.up or up > MAX_SEGMENTS:
        raise InvalidName(CodedText("templates_app.not_a_variable", text=repr(text[:60])))
    return VariablePath(path.head, path.rest, up)


def is_segment(text: str) -> bool:
    """Return whether the text is an index or key of digits, or like a Python identifier, in any script."""
    if text.isascii() and text.isdigit():
        return True
    return not text.startswith("-") and text.replace("-", "_").isidentifier()
