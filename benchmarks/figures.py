"""What a benchmark tells a machine, beside what it prints for people: a line for each figure.

    figure("sends per second, ratio to a plain view", 2.9, at_least=2)

`python -m benchmarks` collects these lines into docs/figures.md.
"""

import json
from dataclasses import asdict, dataclass
from typing import Self

MARK = "figure: "


@dataclass(frozen=True)
class Figure:
    """One number of one run; an aim is a bound on one side, or there is none."""

    name: str
    value: float
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None

    @property
    def aim(self) -> str:
        if self.at_least is not None:
            return f"at least {_spelled(self.at_least)} {self.unit}".strip()
        return "" if self.at_most is None else f"at most {_spelled(self.at_most)} {self.unit}".strip()

    @property
    def verdict(self) -> str:
        if not self.aim:
            return ""
        is_met = self.value >= self.at_least if self.at_least is not None else self.value <= (self.at_most or 0)
        return "met" if is_met else "**missed**"

    @property
    def row(self) -> str:
        value = f"{_spelled(self.value)} {self.unit}".strip()
        return f"| {self.name} | {value} | {self.aim} | {self.verdict} |"

    @classmethod
    def read(cls, line: str) -> Self | None:
        """Return the figure of a line of output, None for any other line."""
        return cls(**json.loads(line.removeprefix(MARK))) if line.startswith(MARK) else None


def figure(
    name: str, value: float, unit: str = "", *, at_least: float | None = None, at_most: float | None = None
) -> None:
    """Print a figure for `python -m benchmarks`. unit: of the value and of its aim."""
    print(MARK + json.dumps(asdict(Figure(name, value, unit, at_least, at_most))), flush=True)


def _spelled(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.2g}"
