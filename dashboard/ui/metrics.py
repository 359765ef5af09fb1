"""The figures of the overview: what became of the emails of the last days, in numbers, a plot and a table."""

from dataclasses import dataclass
from typing import Any

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from analytics.services import REACHED, Day, read_days
from dashboard.ui.charts import Line, bars, curves
from emails.queue_stats import Stats
from workspaces.models import Workspace

PERIODS = (7, 14, 30, 90)
DEFAULT_PERIOD = 14
# Name of what was reached → its colour.
COLORS = {"delivered": "--pr-success", "bounced": "--pr-danger", "opened": "--pr-info", "clicked": "--pr-warning"}


@dataclass(frozen=True)
class Figure:
    """A count, and the share of all emails that it is; rate is None for the count of all."""

    name: str
    count: int
    rate: float | None
    tone: str

    @property
    def percent(self) -> str:
        return "" if self.rate is None else f"{100 * self.rate:.1f} %"


def read_period(raw: str | None) -> int:
    """Return the days asked for, if they are one of PERIODS."""
    return int(raw) if raw in {str(days) for days in PERIODS} else DEFAULT_PERIOD


def figures(workspace: Workspace, *, period: int) -> dict[str, Any]:
    days = read_days(workspace, days=period)
    labels = [date_format(day.date, "j M") for day in days]
    reached = [Line(_word(name), [day.reached[name] for day in days], COLORS[name]) for name in REACHED]
    return {
        "period": period,
        "periods": PERIODS,
        "figures": _sums(days),
        "volume": bars(labels, [Line(_("Emails"), [day.total for day in days])]),
        "outcomes": curves(labels, reached),
        "lines": reached,
        "days": list(reversed(days)),
        "has_mail": any(day.total for day in days),
    }


def queue_words(stats: Stats) -> list[tuple[str, int]]:
    """Return the recipients that have not got their mail yet, by what keeps it."""
    words = ((_("Waiting"), stats.waiting), (_("On their way"), stats.active), (_("For later"), stats.delayed))
    return [*words, (_("Held back"), stats.paused)] if stats.paused else list(words)


def _sums(days: list[Day]) -> list[Figure]:
    total = sum(day.total for day in days)
    sums = {name: sum(day.reached[name] for day in days) for name in REACHED}
    parts = [Figure(_word(name), count, count / total if total else 0.0, name) for name, count in sums.items()]
    return [Figure(_("Emails"), total, None, "all"), *parts]


def _word(name: str) -> str:
    return {"delivered": _("Delivered"), "bounced": _("Bounced"), "opened": _("Opened"), "clicked": _("Clicked")}[name]
