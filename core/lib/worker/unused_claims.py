"""Unused claims: those that ended without a crash by their rows, whose attempts are given back (docs/decisions/0276).

A queue counts the claims of a row before its job begins, so that a row which ends its worker is given up at last. A
database that stops responding, and a process that was stopped for longer than its leases, say nothing about the row.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from django.db import InterfaceError, OperationalError

C = TypeVar("C")


class UnusedClaims(Generic[C]):
    """The unused claims of one queue in this process; they stay in memory until the database responds. Thread-safe.

    give_back: returns the attempts of claims in one transaction; that of a claim which has an outcome is not returned.
    """

    def __init__(self, give_back: Callable[[Collection[C]], object]) -> None:
        self._give_back = give_back
        self._claims: deque[C] = deque()

    def __bool__(self) -> bool:
        return bool(self._claims)

    def add(self, claims: Iterable[C]) -> None:
        self._claims.extend(claims)

    @contextmanager
    def claiming(self) -> Iterator[list[C]]:
        """Give a list for the claims of a block; if the database stops responding within the block, they are unused.

        Another error uses their attempts: a row may be the reason.
        """
        claims: list[C] = []
        try:
            yield claims
        except (OperationalError, InterfaceError):
            self.add(claims)
            raise

    def give_back(self) -> None:
        """Return the attempts of the claims. If the database does not respond, its error is raised; they are kept."""
        claims = [self._claims.popleft() for _ in range(len(self._claims))]
        if not claims:
            return
        try:
            self._give_back(claims)
        except (OperationalError, InterfaceError):
            self.add(claims)
            raise
