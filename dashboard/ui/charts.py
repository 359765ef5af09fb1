"""Plots: what unfold's script hands to Chart.js. The same figures stand in a table beside each."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

# Twelve labels at most: a phone has room for no more.
TICKS = 12


@dataclass(frozen=True)
class Line:
    """One row of figures; color is a variable of the stylesheet."""

    name: str
    figures: Sequence[int]
    color: str = "--color-primary-600"


def bars(labels: Sequence[str], lines: Sequence[Line]) -> str:
    """Return the data of a bar chart as JSON."""
    return _chart(labels, [{**_dataset(line), "maxBarThickness": 22, "borderRadius": 4} for line in lines])


def curves(labels: Sequence[str], lines: Sequence[Line]) -> str:
    """Return the data of a line chart as JSON."""
    return _chart(labels, [{**_dataset(line), "cubicInterpolationMode": "monotone"} for line in lines])


def _dataset(line: Line) -> dict[str, object]:
    color = f"var({line.color})"
    figures = list(line.figures)
    return {
        "label": line.name,
        "data": figures,
        "borderColor": color,
        "backgroundColor": color,
        "displayYAxis": True,
        "maxTicksXLimit": TICKS,
    }


def _chart(labels: Sequence[str], datasets: list[dict[str, object]]) -> str:
    return json.dumps({"labels": list(labels), "datasets": datasets})
