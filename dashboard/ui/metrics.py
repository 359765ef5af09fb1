"""Overview metrics: email counts and outcomes of the last days, as totals, charts and a table."""

from dataclasses import dataclass
from typing import Any

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from analytics.services import COUNTED_EVENTS, DailyVolume, read_days
from dashboard.ui.charts import ChartSeries, bar_chart, line_chart
from emails.queue_stats import QueueStats
from workspaces.models import Workspace

PERIODS = (7, 14, 30, 90)
DEFAULT_PERIOD = 14
# Outcome → colour.
COLORS = {"delivered": "--pr-success", "bounced": "--pr-danger", "opened": "--pr-info", "clicked": "--pr-warning"}


@dataclass(frozen=True)
class Metric:
    """A count and its share of all emails; rate is None for the total."""

    name: str
    count: int
    rate: float | None
    tone: str

    @property
    def percent(self) -> str:
        return "" if self.rate is None else f"{100 * self.rate:.1f}%"


def read_period(raw: str | None) -> int:
    """Return the requested number of days if it is one of PERIODS, otherwise the default."""
    return int(raw) if raw in {str(days) for days in PERIODS} else DEFAULT_PERIOD


def read_metrics(workspace: Workspace, *, period: int) -> dict[str, Any]:
    days = read_days(workspace, days=period)
    labels = [date_format(day.date, "j M") for day in days]
    outcomes = [ChartSeries(_label(name), [day.reached[name] for day in days], COLORS[name]) for name in COUNTED_EVENTS]
    return {
        "period": period,
        "periods": PERIODS,
        "metrics": _totals(days),
        "volume": bar_chart(labels, [ChartSeries(_("Emails"), [day.total for day in days])]),
        "outcomes": line_chart(labels, outcomes),
        "series": outcomes,
        "days": list(reversed(days)),
        "has_mail": any(day.total for day in days),
    }


def queue_counts(stats: QueueStats) -> list[tuple[str, int]]:
    """Return the number of unfinished recipients by queue state, with labels."""
    counts = [(_("Waiting"), stats.waiting), (_("Sending"), stats.active), (_("Delayed"), stats.delayed)]
    return [*counts, (_("Paused"), stats.paused)] if stats.paused else counts


def _totals(days: list[DailyVolume]) -> list[Metric]:
    total = sum(day.total for day in days)
    sums = {name: sum(day.reached[name] for day in days) for name in COUNTED_EVENTS}
    parts = [Metric(_label(name), count, count / total if total else 0.0, name) for name, count in sums.items()]
    return [Metric(_("Emails"), total, None, "all"), *parts]


def _label(name: str) -> str:
    return {"delivered": _("Delivered"), "bounced": _("Bounced"), "opened": _("Opened"), "clicked": _("Clicked")}[name]
