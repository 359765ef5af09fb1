"""Charts for charts.js, which draws them with Chart.js. A table beside each chart has the same values."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum


class ChartKind(StrEnum):
    STACKED_BARS = "bar"
    LINES = "line"


@dataclass(frozen=True)
class ChartSeries:
    """One series of values, None where there are no data.

    color: a CSS variable.
    unit: appended to values.
    limit: drawn as a dashed line if values come near it; the axis follows the values.
    """

    name: str
    values: Sequence[float | None]
    color: str
    unit: str = ""
    limit: float | None = None

    @property
    def top(self) -> float | None:
        """The top of the axis beside a limit: a third above the values, and at least a quarter of the limit."""
        if self.limit is None:
            return None
        lowest = self._lowest_top(self.limit)
        return max(lowest, 1.15 * self.limit) if self.has_limit_line else lowest

    @property
    def has_limit_line(self) -> bool:
        """Whether values come near the limit, which is a line of the chart then."""
        return self.limit is not None and self._lowest_top(self.limit) > self.limit / 1.6

    def _lowest_top(self, limit: float) -> float:
        """Return the top of the axis without the line of the limit."""
        return max(1.3 * max((value for value in self.values if value is not None), default=0), limit / 4)


@dataclass(frozen=True)
class Chart:
    """A chart.

    running: the label of the last day if it is still running, otherwise empty.
    links: the URL of the list of each label.
    """

    kind: ChartKind
    labels: Sequence[str]
    series: Sequence[ChartSeries]
    running: str = ""
    links: Sequence[str] = ()

    @property
    def legend(self) -> list[ChartSeries]:
        """The series that are in the picture: those with a value."""
        return [series for series in self.series if any(series.values)]

    @property
    def rows(self) -> list[tuple[str, list[float | None]]]:
        """Each label with its values, for the table beside the chart."""
        return [(label, [one.values[place] for one in self.series]) for place, label in enumerate(self.labels)]

    @property
    def json(self) -> str:
        series = [{**asdict(one), "top": one.top, "hasLimitLine": one.has_limit_line} for one in self.series]
        return json.dumps({**asdict(self), "series": series})
