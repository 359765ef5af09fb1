"""Allowance: the attempts that this process may begin at a pair until its next report (docs/decisions/0366, 0367)."""

from collections.abc import Iterator
from contextlib import contextmanager

from core.delivery.pacing.pairs import LEASE_SECONDS, PairGrant

USED_UP = "This address is new, and has sent the receiver its messages of the day."
TAKEN_OVER = "This address has taken over as many messages to the receiver as it may on one day."


class Allowance:
    """The attempts at a pair whose messages of a day are limited, and those of messages of another source.

    begun, taken_over: attempts since the last report; taken_over also has those that wait.
    """

    def __init__(self) -> None:
        self.begun = 0
        self._messages: int | None = None
        self._for_others = 0
        self._begun_for_others = self._waiting_for_others = 0
        self._used_up_until = self._taken_over_until = float("-inf")

    @property
    def is_limited(self) -> bool:
        """Return whether there is a number of messages."""
        return self._messages is not None

    @property
    def taken_over(self) -> int:
        return self._begun_for_others + self._waiting_for_others

    def has_room(self, *, is_taken_over: bool) -> bool:
        """Return whether an attempt may begin now."""
        return self._messages != 0 and (not is_taken_over or self._for_others > 0)

    def begin(self, *, is_taken_over: bool) -> None:
        """Count an attempt that begins."""
        self.begun += 1
        if self._messages is not None:
            self._messages -= 1
        if is_taken_over:
            self._begun_for_others += 1
            self._for_others -= 1

    @contextmanager
    def waiting(self, *, is_taken_over: bool) -> Iterator[None]:
        """Count an attempt that waits."""
        self._waiting_for_others += is_taken_over
        try:
            yield
        finally:
            self._waiting_for_others -= is_taken_over

    def reset(self) -> None:
        """Begin the time until the next report."""
        self.begun = self._begun_for_others = 0

    def accept(self, grant: PairGrant, now: float) -> None:
        # Attempts that began after the report have used the former ones.
        self._messages = None if grant.messages is None else max(grant.messages - self.begun, 0)
        self._for_others = max(grant.taken_over - self._begun_for_others, 0)
        if grant.is_used_up:
            self._used_up_until = now + LEASE_SECONDS
        if grant.is_taken_over:
            self._taken_over_until = now + LEASE_SECONDS

    def refusal(self, now: float, *, is_taken_over: bool) -> str:
        """Return why no attempt begins for the time of a lease; empty if one may.

        Afterwards another process may have given some back, or a day has begun.
        """
        if now < self._used_up_until:
            return USED_UP
        return TAKEN_OVER if is_taken_over and now < self._taken_over_until else ""
