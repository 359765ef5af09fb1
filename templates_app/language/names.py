"""Names in tags: `user.name`, `items.0`, `this.price`, `@index`."""

from dataclasses import dataclass

MAX_LENGTH = 255
MAX_SEGMENTS = 20
# What every round of an each knows beside its item. Data never holds these names: no path reaches a key with an @.
LOOP_NAMES = ("@index", "@first", "@last", "@key")


class InvalidName(ValueError):
    """Raised with a sentence for a text that is not a dotted name."""


@dataclass(frozen=True, slots=True)
class Path:
    """A dotted name: the head is looked up in the scopes, the rest inside of what was found there."""

    head: str
    rest: tuple[str, ...] = ()

    @property
    def is_of_a_loop(self) -> bool:
        return self.head.startswith("@")

    def __str__(self) -> str:
        return ".".join((self.head, *self.rest))


def parse_path(text: str) -> Path:
    """Read a dotted name. Raises InvalidName."""
    if text in LOOP_NAMES:
        return Path(text)
    if text.startswith("@"):
        raise InvalidName(f"The names with an @ are {', '.join(LOOP_NAMES)}.")
    if len(text) > MAX_LENGTH:
        raise InvalidName(f"A name has at most {MAX_LENGTH} characters.")
    head, *rest = text.split(".")
    if len(rest) >= MAX_SEGMENTS:
        raise InvalidName(f"A name has at most {MAX_SEGMENTS} parts between dots.")
    if not all(map(_is_segment, (head, *rest))):
        raise InvalidName(
            f"{text[:60]!r} is not a name: write letters, digits, _ and -, joined by dots, as in user.name or items.0."
        )
    return Path(head, tuple(rest))


def _is_segment(text: str) -> bool:
    """Letters of any script count, as in Python's identifiers; a part of digits is an index or a key."""
    if text.isascii() and text.isdigit():
        return True
    return not text.startswith("-") and text.replace("-", "_").isidentifier()
