"""Fields of requests, as the generated module `inputs` describes them."""

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Input:
    """A field of a request, as the API describes it.

    kind: its JSON type.
    least, most: limits of a number.
    """

    name: str
    kind: str
    text: str
    choices: tuple[str, ...] = ()
    least: Optional[float] = None
    most: Optional[float] = None
