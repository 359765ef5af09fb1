"""Rate thresholds above which a workspace is warned or suspended, and their descriptions."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.utils.formats import number_format
from django.utils.functional import Promise, lazy
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from reputation.counting import ReputationCounter
from reputation.rates import MINIMUM_COUNTS, PERIOD_DAYS, ReputationRates


def _number(value: float | Decimal | None, decimals: int | None = None) -> str:
    return number_format(value or 0, decimals, force_grouping=True)


# A number in the language that is active when the text is read.
lazy_number = lazy(_number, str)


@dataclass(frozen=True)
class RateThreshold:
    """A threshold in percent; None is off. warned_at: the workspace field with the time of the last warning.

    description: a lazy sentence with the fields of `summary`.
    """

    counter: ReputationCounter
    warn_percent: Decimal | None
    suspend_percent: Decimal | None
    warned_at: str
    description: Any

    def should_warn(self, rates: ReputationRates) -> bool:
        return self._is_above(self.warn_percent, rates)

    def should_suspend(self, rates: ReputationRates) -> bool:
        return self._is_above(self.suspend_percent, rates)

    def summary(self, rates: ReputationRates, percent: Decimal | None) -> Promise:
        """Return a sentence for the owners, in the active language; it fits Workspace.suspended_reason."""
        count = rates.counts[self.counter]
        numbers = {
            "count": lazy_number(count),
            "sent": lazy_number(rates.sent),
            "days": PERIOD_DAYS,
            "share": lazy_number(100 * count / max(rates.sent, 1), decimals=2),
            "limit": lazy_number(percent),
        }
        return format_lazy(self.description, **numbers)

    def _is_above(self, percent: Decimal | None, rates: ReputationRates) -> bool:
        count = rates.counts[self.counter]
        return percent is not None and count >= MINIMUM_COUNTS[self.counter] and count * 100 > percent * rates.sent


def rate_thresholds() -> Iterator[RateThreshold]:
    """Yield the configured thresholds, most severe first."""
    yield RateThreshold(
        ReputationCounter.COMPLAINED,
        warn_percent=settings.COMPLAINT_WARN_PERCENT,
        suspend_percent=settings.COMPLAINT_PAUSE_PERCENT,
        warned_at="complaints_warned_at",
        description=_(
            "{count} of {sent} recipients in {days} days reported the email as spam: {share}%, "
            "above the limit of {limit}%."
        ),
    )
    yield RateThreshold(
        ReputationCounter.BOUNCED,
        warn_percent=settings.BOUNCE_WARN_PERCENT,
        suspend_percent=settings.BOUNCE_PAUSE_PERCENT,
        warned_at="bounces_warned_at",
        description=_(
            "{count} of {sent} recipients in {days} days had an invalid address: {share}%, above the limit of {limit}%."
        ),
    )
