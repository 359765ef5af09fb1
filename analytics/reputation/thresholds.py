"""Rate thresholds above which a workspace is warned or suspended, and their descriptions."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from django.conf import settings

from analytics.reputation.counting import ReputationCounter
from analytics.reputation.rates import MINIMUM_COUNTS, PERIOD_DAYS, ReputationRates
from core.lib.coded_texts import CodedText


@dataclass(frozen=True)
class RateThreshold:
    """A threshold in percent; None is off.

    warned_at: the workspace field with the time of the last warning.
    code: the code of the text of `summary`.
    """

    counter: ReputationCounter
    warn_percent: Decimal | None
    suspend_percent: Decimal | None
    warned_at: str
    code: str

    def summary(self, rates: ReputationRates, percent: Decimal | None) -> CodedText:
        """Return a sentence for the owners; it fits Workspace.suspended_reason."""
        count = rates.counts[self.counter]
        return CodedText(
            self.code,
            count=f"{count:,}",
            sent=f"{rates.sent:,}",
            days=PERIOD_DAYS,
            share=f"{100 * count / max(rates.sent, 1):,.2f}",
            limit=percent or 0,
        )

    def is_above(self, percent: Decimal | None, rates: ReputationRates) -> bool:
        count = rates.counts[self.counter]
        return percent is not None and count >= MINIMUM_COUNTS[self.counter] and count * 100 > percent * rates.sent


def rate_thresholds() -> Iterator[RateThreshold]:
    """Yield the configured thresholds, most severe first."""
    yield RateThreshold(
        ReputationCounter.COMPLAINED,
        warn_percent=settings.COMPLAINT_WARN_PERCENT,
        suspend_percent=settings.COMPLAINT_PAUSE_PERCENT,
        warned_at="complaints_warned_at",
        code="reputation.complaints",
    )
    yield RateThreshold(
        ReputationCounter.BOUNCED,
        warn_percent=settings.BOUNCE_WARN_PERCENT,
        suspend_percent=settings.BOUNCE_PAUSE_PERCENT,
        warned_at="bounces_warned_at",
        code="reputation.bounces",
    )
