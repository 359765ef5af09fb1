"""Charts for charts.js, which draws them with Chart.js. A table beside each chart has the same values."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from django.utils.formats import number_format


class ChartKind(StrEnum):
    STACKED_BARS = "bar"
    LINES = "line"


@dataclass(frozen=True)
class ChartSeries:
    """One series of values, None where there are no data. color: a CSS variable; limit: drawn as a dashed line.

    unit: appended to values. A series with a unit has an axis of its own, on which the limit is half-way up unless
    values are above twice the limit: the limits of two series coincide.
    """

    name: str
    values: Sequence[float | None]
    color: str
    unit: str = ""
    limit: float | None = None

    @property
    def limit_text(self) -> str:
        return "" if self.limit is None else number_format(f"{self.limit:g}")


@dataclass(frozen=True)
class Chart:
    """running: the label of the last day if it is still running, otherwise empty."""

    kind: ChartKind
    labels: Sequence[str]
    series: Sequence[ChartSeries]
    running: str = ""

    @property
    def json(self) -> str:
        return json.dumps(asdict(self))
