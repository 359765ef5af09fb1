"""Chart data for Chart.js, which unfold's script renders. A table beside each chart has the same values."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

# A phone has room for at most twelve labels.
MAX_TICKS = 12


@dataclass(frozen=True)
class ChartSeries:
    """One series of values; color is a CSS variable."""

    name: str
    values: Sequence[int]
    color: str = "--color-primary-600"


def bar_chart(labels: Sequence[str], series: Sequence[ChartSeries]) -> str:
    """Return the data of a bar chart as JSON."""
    return _chart(labels, [{**_dataset(one), "maxBarThickness": 22, "borderRadius": 4} for one in series])


def line_chart(labels: Sequence[str], series: Sequence[ChartSeries]) -> str:
    """Return the data of a line chart as JSON."""
    return _chart(labels, [{**_dataset(one), "cubicInterpolationMode": "monotone"} for one in series])


def _dataset(series: ChartSeries) -> dict[str, object]:
    color = f"var({series.color})"
    return {
        "label": series.name,
        "data": list(series.values),
        "borderColor": color,
        "backgroundColor": color,
        "displayYAxis": True,
        "maxTicksXLimit": MAX_TICKS,
    }


def _chart(labels: Sequence[str], datasets: list[dict[str, object]]) -> str:
    return json.dumps({"labels": list(labels), "datasets": datasets})
