"""Variable names in tags: `user.name`, `items.0`, `this.price`, `@index`."""

from dataclasses import dataclass

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
        raise InvalidName(f"The only names that begin with @ are {', '.join(LOOP_NAMES)}.")
    if len(text) > MAX_LENGTH:
        raise InvalidName(f"A name can have at most {MAX_LENGTH} characters.")
    head, *rest = text.split(".")
    if len(rest) >= MAX_SEGMENTS:
        raise InvalidName(f"A name can have at most {MAX_SEGMENTS} segments.")
    if not all(map(_is_segment, (head, *rest))):
        raise InvalidName(
            f"{text[:60]!r} is not a name: use alphanumeric characters, _ and -, joined by dots, as in user.name or "
            "items.0."
        )
    return VariablePath(head, tuple(rest))


def _is_segment(text: str) -> bool:
    """Return whether the text is an index or key of digits, or like a Python identifier, in any script."""
    if text.isascii() and text.isdigit():
        return True
    return not text.startswith("-") and text.replace("-", "_").isidentifier()
