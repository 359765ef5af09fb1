"""Variable names in tags: `user.name`, `items.0`, `this.price`, `@index`."""

from dataclasses import dataclass

from lib.coded_texts import CodedText

MAX_LENGTH = 255
MAX_SEGMENTS = 20
# Names available in each iteration of {{#each}}. They never clash with data: no path can reach a key with an @.
LOOP_NAMES = ("@index", "@first", "@last", "@key")


class InvalidName(ValueError):
    """Raised for a text that is not a dotted name, with a message for the template's author."""


@dataclass(frozen=True, slots=True)
class VariablePath:
    """A dotted name. The head is looked up in the scopes, the rest inside the value of the head."""

    head: str
    rest: tuple[str, ...] = ()

    @property
    def is_loop_name(self) -> bool:
        return self.head.startswith("@")

    def __str__(self) -> str:
        return ".".join((self.head, *self.rest))


def parse_path(text: str) -> VariablePath:
    """Parse a dotted name. Raises InvalidName."""
    if text in LOOP_NAMES:
        return VariablePath(text)
    if text.startswith("@"):
        raise InvalidName(CodedText("templates_app.loop_names", names=", ".join(LOOP_NAMES)))
    if len(text) > MAX_LENGTH:
        raise InvalidName(CodedText("templates_app.name_too_long", limit=MAX_LENGTH))
    head, *rest = text.split(".")
    if len(rest) >= MAX_SEGMENTS:
        raise InvalidName(CodedText("templates_app.name_segments", limit=MAX_SEGMENTS))
    if not all(map(_is_segment, (head, *rest))):
        raise InvalidName(CodedText("templates_app.not_a_variable", text=repr(text[:60])))
    return VariablePath(head, tuple(rest))


def _is_segment(text: str) -> bool:
    """Return whether the text is an index or key of digits, or like a Python identifier, in any script."""
    if text.isascii() and text.isdigit():
        return True
    return not text.startswith("-") and text.replace("-", "_").isidentifier()
