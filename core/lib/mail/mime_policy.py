"""Policy of a MIME reader: the bounds of a message, and which malformed ones are refused."""

from dataclasses import dataclass


class MalformedMime(ValueError):
    """Raised with an explanation for a message that cannot be read without guessing."""


class TooManyParts(MalformedMime):
    """Raised with either policy after the last part that is read."""


@dataclass(frozen=True)
class MimePolicy:
    """The bounds of a message, and whether it is refused beyond them or where a reader would have to guess.

    is_strict: raise MalformedMime; otherwise the rest is dropped, and the content is read as well as possible.
    max_header_bytes, max_fields: limits of each header.
    max_parameters: characters of a field about the content.
    opens_messages: the parts of attached messages are parts of the message.
    """

    is_strict: bool = False
    max_bytes: int = 25 * 1024 * 1024
    max_header_bytes: int = 64 * 1024
    max_fields: int = 400
    max_parameters: int = 4_000
    max_depth: int = 10
    max_parts: int = 100
    opens_messages: bool = False

    def refuse(self, problem: str) -> None:
        """Refuse a message of which programs read different contents, or not all."""
        if self.is_strict:
            raise MalformedMime(problem)

    def repair(self, problem: str) -> None:
        """Accept a deviation that all programs read alike."""
