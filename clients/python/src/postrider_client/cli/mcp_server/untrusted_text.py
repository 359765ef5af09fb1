"""Text of strangers for assistants, between two marks with a random number (docs/decisions/0238).

Such a text may contain instructions. Nobody who writes one knows the number, so that it cannot contain its end mark.
"""

import secrets
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Marks:
    """The marks of one result. number: of the result."""

    number: str = field(default_factory=lambda: secrets.token_hex(8))

    def around(self, *lines: str) -> str:
        return "\n".join([f"[BEGIN UNTRUSTED {self.number}]", *lines, f"[END UNTRUSTED {self.number}]"])
