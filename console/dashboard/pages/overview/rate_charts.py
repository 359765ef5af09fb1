"""Charts of the bounce and the complaint rate: each day with the six days before it (docs/decisions/0260)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from analytics.outcomes import DayOutcomes
from analytics.reputation.rates import PERIOD_DAYS
from console.dashboard.pages.overview.health import (
    MIN_SENT,
    bounce_limit,
    complaint_limit,
    percent_of,
)
from console.dashboard.templatetags.percent import PERCENT, percent_text
from console.dashboard.ui.charts import Chart, ChartKind, ChartSeries

NAMES: dict[str, str | Promise] = {
    "bounced": gettext_lazy("Bounce rate"),
    "complained": gettext_lazy("Complaint rate"),
}
COLORS = {"bounced": "--pr-danger", "complained": "--pr-warning"}


@dataclass(frozen=True)
class RateChart:
    """A small chart of one rate. rate: on the last day, and limit, as texts; rate is empty without a value."""

    name: str
    rate: str
    limit: str
    is_above: bool
    chart: Chart

    @property
    def rates(self) -> Sequence[float | None]:
        """The rate of each day; None where too few emails were sent."""
        return self.chart.series[0].values

    @property
    def is_empty(self) -> bool:
        return all(value is None for value in self.rates)

    @property
    def has_limit_line(self) -> bool:
        return not self.is_empty and self.chart.series[0].has_limit_line


def rate_charts(days: Sequence[DayOutcomes], *, first: date, created_on: date, running: str) -> list[RateChart]:
    """Return the charts of the days from `first` on.

    days: consecutive, with the PERIOD_DAYS - 1 before `first`.
    running: as in Chart.
    """
    shown = [place for place, day in enumerate(days) if day.day >= first]
    labels = [date_format(days[place].day, "MONTH_DAY_FORMAT") for place in shown]
    limits = {"bounced": bounce_limit(), "complained": complaint_limit()}
    return [
        _rate_chart(name, [_rate(days, place, name, created_on) for place in shown], limit, labels, running)
        for name, limit in limits.items()
    ]


def _rate_chart(
    name: str, rates: Sequence[float | None], limit: float, labels: Sequence[str], running: str
) -> RateChart:
    rate = rates[-1]
    series = ChartSeries(str(NAMES[name]), rates, COLORS[name], PERCENT % {"number": ""}, limit)
    return RateChart(
        series.name,
        rate="" if rate is None else percent_text(rate),
        limit=percent_text(limit),
        is_above=rate is not None and rate > limit,
        chart=Chart(ChartKind.LINES, labels, [series], running=running),
    )


def _rate(days: Sequence[DayOutcomes], place: int, name: str, created_on: date) -> float | None:
    """Return the rate of a day and the days before it; None before the workspace, and of fewer than MIN_SENT."""
    window = [day.rated for day in days[max(place + 1 - PERIOD_DAYS, 0) : place + 1]]
    sent = sum(rated["sent"] for rated in window)
    is_known = sent >= MIN_SENT and days[place].day >= created_on
    return percent_of(sum(rated[name] for rated in window), sent) if is_known else None
