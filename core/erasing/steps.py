"""Steps that erase people by their addresses: the types that apps share (docs/decisions/0353).

A step does a bounded amount of work in the transaction of its caller, and returns the place at which it continues.
Repeating a step that was rolled back is safe.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

K = TypeVar("K")

# The end of an address in expressions of PostgreSQL: a full stop or hyphen after it may be that of a sentence.
AFTER = r"($|[^\w.-]|[.-]($|\W))"

# In place of an address in records that stay.
ERASED = "erased@invalid"


@dataclass(frozen=True)
class ErasureScope:
    """The people to erase from one workspace. addresses: addr-specs in lower case, each once."""

    workspace_id: str
    addresses: tuple[str, ...]

    @cached_property
    def pattern(self) -> str:
        """An expression of PostgreSQL for lower-case text with one of the addresses, not within a longer one."""
        return rf"(^|[^\w.+-])({'|'.join(map(re.escape, self.addresses))}){AFTER}"

    @property
    def patterns(self) -> list[str]:
        """The same for each address alone, in their order."""
        return [ErasureScope(self.workspace_id, (address,)).pattern for address in self.addresses]

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        return re.compile(rf"(?<![\w.+-])(?:{'|'.join(map(re.escape, self.addresses))})(?!\w|[.-]\w)", re.IGNORECASE)

    def named_in(self, text: str) -> set[str]:
        """Return the addresses that a text has, in any case, and not within longer ones."""
        return {match[0].lower() for match in self._expression.finditer(text)}

    def replace_in(self, value: Any) -> Any:
        """Return a JSON value with ERASED in place of the addresses, and of texts such as `Ada L <ada@example.com>`."""
        if isinstance(value, dict):
            return {key: self.replace_in(member) for key, member in value.items()}
        if isinstance(value, list):
            return [self.replace_in(member) for member in value]
        if not isinstance(value, str) or not self._expression.search(value):
            return value
        return ERASED if "<" in value else self._expression.sub(ERASED, value)


@dataclass
class StepResult:
    """The result of a step.

    counts: numbers of erased records by kind, for each address.
    waiting: numbers of emails that are still on their way, for each address.
    place: where the step continues, as JSON; None when it is done.
    """

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    waiting: Counter[str] = field(default_factory=Counter)
    place: Any = None

    def counts_of(self, address: str) -> Counter[str]:
        return self.counts.get(address, Counter())

    def add(self, addresses: Iterable[str], **kinds: int) -> None:
        for address in addresses:
            self.counts.setdefault(address, Counter()).update(kinds)


@dataclass(frozen=True)
class NamedRows(Generic[K]):
    """A page of rows.

    named: the addresses that each of them has.
    place: where the next page begins; None after the last one.
    """

    named: dict[K, set[str]]
    place: Any


ErasureStep = Callable[[ErasureScope, Any], StepResult]
