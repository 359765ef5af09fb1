"""Figures that a benchmark reports: one machine-readable line each, in addition to its printed output.

    record_figure("sends per second, ratio to a plain view", 2.9, at_least=2)

`python -m tools.benchmarks` collects these lines into docs/figures.md.
"""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Self

MARK = "figure: "


@dataclass(frozen=True)
class BenchmarkFigure:
    """One number of one run, with at most one bound as its target.

    lowest, highest: the results of the rounds of which the value is the median.
    """

    name: str
    value: float
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None
    lowest: float | None = None
    highest: float | None = None

    @property
    def target(self) -> str:
        if self.at_least is not None:
            return f"at least {_format_number(self.at_least)} {self.unit}".strip()
        return "" if self.at_most is None else f"at most {_format_number(self.at_most)} {self.unit}".strip()

    @property
    def result(self) -> str:
        if not self.target:
            return ""
        is_met = self.value >= self.at_least if self.at_least is not None else self.value <= (self.at_most or 0)
        return "met" if is_met else "**missed**"

    @property
    def row(self) -> str:
        value = f"{_format_number(self.value)} {self.unit}".strip()
        if self.lowest is not None and self.highest is not None and self.lowest < self.highest:
            value += f" ({_format_number(self.lowest)} to {_format_number(self.highest)})"
        return f"| {self.name} | {value} | {self.target} | {self.result} |"

    @classmethod
    def parse(cls, line: str) -> Self | None:
        """Return the figure in a line of output, None for any other line."""
        return cls(**json.loads(line.removeprefix(MARK))) if line.startswith(MARK) else None


def record_figure(
    name: str, value: float, unit: str = "", *, at_least: float | None = None, at_most: float | None = None
) -> None:
    """Print a figure for `python -m tools.benchmarks`. unit: the unit of the value and its target."""
    _print(BenchmarkFigure(name, value, unit, at_least, at_most))


def record_rounds(
    name: str, values: Sequence[float], unit: str = "", *, at_least: float | None = None, at_most: float | None = None
) -> None:
    """Print the median of rounds as a figure, with the lowest and the highest."""
    _print(BenchmarkFigure(name, statistics.median(values), unit, at_least, at_most, min(values), max(values)))


def _print(figure: BenchmarkFigure) -> None:
    print(MARK + json.dumps(asdict(figure)), flush=True)


def _format_number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.2g}"
