"""Overview metrics: outcomes of a period, as totals compared with the period before, charts and a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.dateparse import parse_date
from django.utils.formats import date_format, number_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from analytics.outcomes import EVENTS, OUTCOMES, DayOutcomes, sum_outcomes
from analytics.reputation.rates import PERIOD_DAYS
from console.dashboard.pages.overview.health import percent_of
from console.dashboard.pages.overview.rate_charts import RateChart, rate_charts
from console.dashboard.templatetags.percent import percent_text
from console.dashboard.ui.charts import Chart, ChartKind, ChartSeries
from core.workspaces.models import Workspace
from emails.queue_stats import QueueStats

PERIODS = (7, 14, 30, 90)
DEFAULT_PERIOD = 14
MAX_DAYS = 366
# Before any email.
EARLIEST = date(2000, 1, 1)
LABELS: dict[str, str | Promise] = {
    "total": gettext_lazy("Emails"),
    "delivered": gettext_lazy("Delivered"),
    "sent": gettext_lazy("Sent"),
    "queued": gettext_lazy("Queued"),
    "bounced": gettext_lazy("Bounced"),
    "failed": gettext_lazy("Failed"),
    "opened": gettext_lazy("Opened"),
    "clicked": gettext_lazy("Clicked"),
}
# Statuses of emails that had an event, as far as one status says so.
STATUSES = {
    "delivered": "delivered,opened,clicked",
    "bounced": "bounced",
    "opened": "opened,clicked",
    "clicked": "clicked",
}
COLORS = {
    "delivered": "--pr-success",
    "sent": "--pr-info",
    "queued": "--pr-muted",
    "bounced": "--pr-danger",
    "failed": "--pr-warning",
}


@dataclass(frozen=True)
class Period:
    """Days in UTC, both included."""

    first: date
    last: date
    is_custom: bool = False

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def first_before(self) -> date:
        """The first day of the period before, which has the same length."""
        return self.first - timedelta(days=self.days)

    @property
    def first_read(self) -> date:
        """The first day that the page needs: of the period before, or of the rates of the first day."""
        return min(self.first_before, self.first - timedelta(days=PERIOD_DAYS - 1))


@dataclass(frozen=True)
class Metric:
    """A count and its share of all emails, now and in the period before.

    rate: None for the total.
    before: None if the workspace did not exist during all of the period before.
    """

    name: str
    count: int
    rate: float | None
    tone: str
    before: str | None
    # The filter `status` of the list that shows the counted emails.
    statuses: str = ""


@dataclass(frozen=True)
class DayRow:
    """A day of the table; counts is None before the workspace existed. rates: the points of the charts."""

    day: date
    counts: Sequence[int] | None
    rates: Sequence[float | None]
    is_running: bool


def read_period(request: HttpRequest) -> Period:
    """Return the requested period: from and to, or a number of days from PERIODS; otherwise the default."""
    today = datetime.now(UTC).date()
    first, last = (_parse_date(request.GET.get(name, "")) for name in ("from", "to"))
    if first and last and EARLIEST <= first <= last <= today and last - first < timedelta(days=MAX_DAYS):
        return Period(first, last, is_custom=True)
    raw = request.GET.get("days")
    days = int(raw) if raw in {str(days) for days in PERIODS} else DEFAULT_PERIOD
    return Period(today - timedelta(days=days - 1), today)


def read_metrics(
    workspace: Workspace, *, period: Period, days: Sequence[DayOutcomes], list_filter: str = ""
) -> dict[str, Any]:
    """Return the metrics of a period.

    days: all from period.first_read on, perhaps among others.
    list_filter: the filter of the emails in the list, as a query string.
    """
    before = [day for day in days if period.first_before <= day.day < period.first]
    rated = [day for day in days if day.day <= period.last]
    days = [day for day in rated if period.first <= day.day]
    created_on = workspace.created_at.astimezone(UTC).date()
    today = datetime.now(UTC).date()
    shown = [name for name in OUTCOMES if any(day.outcomes[name] for day in days)] or ["delivered"]
    charts = rate_charts(rated, first=period.first, created_on=created_on, running=_running(days, today))
    return {
        "period": period,
        "periods": PERIODS,
        "metrics": _totals(days, before if period.first_before >= created_on else None),
        "volume": _volume_chart(days, shown, created_on, today, list_filter),
        "list_filter": list_filter,
        "rates": charts,
        "columns": [LABELS[name] for name in ("total", *shown)],
        "rows": list(reversed(_rows(days, shown, charts, created_on, today))),
    }


def queue_counts(stats: QueueStats) -> list[tuple[str, int]]:
    """Return the number of unfinished recipients by queue state, with the words of the lists (docs/decisions/0268)."""
    counts = [
        (_("Queued"), stats.waiting),
        (_("Being sent"), stats.active),
        (_("Scheduled or retrying"), stats.delayed),
    ]
    return [*counts, (_("Paused"), stats.paused)] if stats.paused else counts


def _parse_date(text: str) -> date | None:
    try:
        return parse_date(text)
    except ValueError:
        return None


def _totals(days: Sequence[DayOutcomes], before: Sequence[DayOutcomes] | None) -> list[Metric]:
    now = sum_outcomes(days)
    then = None if before is None else sum_outcomes(before)
    total = Metric(
        str(LABELS["total"]), now["total"], None, "all", None if then is None else _count_text(then["total"])
    )
    return [total, *(_event_metric(name, now, then) for name in EVENTS)]


def _event_metric(name: str, now: dict[str, int], then: dict[str, int] | None) -> Metric:
    before = None if then is None or not then["total"] else percent_text(percent_of(then[name], then["total"]))
    rate = percent_of(now[name], now["total"]) or 0.0
    return Metric(str(LABELS[name]), now[name], rate, name, before, STATUSES[name])


def _count_text(count: int) -> str:
    return number_format(count, force_grouping=True)


def _volume_chart(
    days: Sequence[DayOutcomes], shown: Sequence[str], created_on: date, today: date, list_filter: str
) -> Chart:
    url = f"{reverse('dashboard:emails_email_changelist')}?{list_filter}{'&' if list_filter else ''}"
    links = [f"{url}from={day.day}&to={day.day}" for day in days]
    series = [
        ChartSeries(
            str(LABELS[name]), [day.outcomes[name] if day.day >= created_on else None for day in days], COLORS[name]
        )
        for name in shown
    ]
    return Chart(ChartKind.STACKED_BARS, _labels(days), series, running=_running(days, today), links=links)


def _labels(days: Sequence[DayOutcomes]) -> list[str]:
    return [date_format(day.day, "MONTH_DAY_FORMAT") for day in days]


def _running(days: Sequence[DayOutcomes], today: date) -> str:
    return _("Today, so far") if days[-1].day == today else ""


def _rows(
    days: Sequence[DayOutcomes], shown: Sequence[str], charts: Sequence[RateChart], created_on: date, today: date
) -> list[DayRow]:
    rates = zip(*(chart.rates for chart in charts), strict=True)
    return [
        DayRow(
            day.day,
            [day.total, *(day.outcomes[name] for name in shown)] if day.day >= created_on else None,
            rates_of_day,
            is_running=day.day == today,
        )
        for day, rates_of_day in zip(days, rates, strict=True)
    ]
