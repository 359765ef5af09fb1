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
    def json(self) -> str:
        return json.dumps(asdict(self))
