"""Above which rates a workspace is warned and suspended, and the words for it."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from django.conf import settings

from emails.upkeep.reputation_counters import Rated
from system_mail.reputation.rates import DAYS, FEWEST, Rates


@dataclass(frozen=True)
class Limit:
    """Percentages; None is off. warned_at: the field of a workspace that remembers the warning."""

    what: Rated
    warn: Decimal | None
    pause: Decimal | None
    warned_at: str
    happened: str

    def warns(self, rates: Rates) -> bool:
        return self._is_above(self.warn, rates)

    def pauses(self, rates: Rates) -> bool:
        return self._is_above(self.pause, rates)

    def figure(self, rates: Rates, percent: Decimal | None) -> str:
        """Return what the owner reads; short enough for Workspace.suspended_reason."""
        count, share = rates.counts[self.what], 100 * rates.counts[self.what] / max(rates.sent, 1)
        figure = f"{count:,} of {rates.sent:,} recipients in {DAYS} days {self.happened}: {share:.2f} %"
        return f"{figure}, above the limit of {percent} %."

    def _is_above(self, percent: Decimal | None, rates: Rates) -> bool:
        count = rates.counts[self.what]
        return percent is not None and count >= FEWEST[self.what] and count * 100 > percent * rates.sent


def limits() -> Iterator[Limit]:
    """Yield the limits in force, the gravest first."""
    yield Limit(
        Rated.COMPLAINED,
        warn=settings.COMPLAINT_WARN_PERCENT,
        pause=settings.COMPLAINT_PAUSE_PERCENT,
        warned_at="complaints_warned_at",
        happened="called the mail spam",
    )
    yield Limit(
        Rated.BOUNCED,
        warn=settings.BOUNCE_WARN_PERCENT,
        pause=settings.BOUNCE_PAUSE_PERCENT,
        warned_at="bounces_warned_at",
        happened="were refused for their address",
    )
