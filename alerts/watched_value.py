"""A watched value, as a share or a number, and its comparison with a threshold (docs/decisions/0246)."""

from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from typing import Protocol

# An alert ends below this share of its threshold, so that a value near it neither begins nor ends alerts all day.
END_SHARE = Decimal("0.9")


def number_text(number: float) -> str:
    """Return a value or a threshold with at most two decimals, such as `1,500` or `0.07`."""
    return f"{number:,.2f}".rstrip("0").rstrip(".")


class WatchedValue(Protocol):
    """A value of an alert.

    number: as clients see it, rounded down to two decimals.
    part, total: the emails or recipients of a share; 0 if there are none.
    """

    @property
    def number(self) -> float: ...

    @property
    def part(self) -> int: ...

    @property
    def total(self) -> int: ...

    def reaches(self, limit: Decimal) -> bool:
        """Return whether the value is at a limit, or above it."""

    def is_far_below(self, limit: Decimal) -> bool:
        """Return whether the value is below END_SHARE of a limit."""


@dataclass(frozen=True)
class Share:
    """A share in percent: of the emails or recipients of a rate, or of the units of a quota."""

    part: int
    total: int

    @property
    def number(self) -> float:
        """The percentage: 3.999 % has not reached 4 %."""
        return 10_000 * self.part // self.total / 100

    def reaches(self, limit: Decimal) -> bool:
        return 100 * self.part >= limit * self.total

    def is_far_below(self, limit: Decimal) -> bool:
        return 100 * self.part < END_SHARE * limit * self.total


@dataclass(frozen=True)
class Amount:
    """Emails, seconds or usual gaps, rounded down to two decimals.

    total: the recipients that it was measured of.
    """

    amount: Decimal
    total: int = 0
    part: int = 0

    @classmethod
    def of(cls, number: float, *, total: int = 0) -> "Amount":
        return cls(Decimal(number).quantize(Decimal("0.01"), ROUND_DOWN), total)

    @property
    def number(self) -> float:
        return float(self.amount)

    def reaches(self, limit: Decimal) -> bool:
        return self.amount >= limit

    def is_far_below(self, limit: Decimal) -> bool:
        return self.amount < END_SHARE * limit


# The value of each alert by its id; None if there are too few emails, or no quota.
WatchedValues = dict[str, WatchedValue | None]
