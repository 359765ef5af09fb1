"""Progress of a long command: a bar in a terminal, a line per tenth elsewhere (docs/decisions/0108).

Only the standard library: the launcher uses it before any package is installed.
"""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Self, TextIO, TypeVar

BAR_WIDTH = 24
LINE_WIDTH = 100
CLEAR_TO_END = "\x1b[K"

Item = TypeVar("Item")


class ProgressBar:
    """Writes to standard error, so that the output of a command stays readable for programs.

    with ProgressBar("Installing", total=61) as bar:
        bar.advance(detail="django")
    """

    def __init__(self, label: str, *, total: int, stream: TextIO | None = None) -> None:
        self._label, self._total = label, total
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._started = time.monotonic()
        self._done = 0
        self._reported_tenths = 0

    def __enter__(self) -> Self:
        self._draw("")
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_terminal:
            self._write("\n")

    def advance(self, count: int = 1, *, detail: str = "") -> None:
        """Report that more items are done. detail: the item that comes next."""
        self._done += count
        self._draw(detail)

    def finish(self, *, detail: str = "") -> None:
        """Report that all items are done, also if there were fewer than expected."""
        self.advance(max(self._total - self._done, 0), detail=detail)

    def _draw(self, detail: str) -> None:
        if self._is_terminal:
            self._draw_bar(detail)
        elif (tenths := 10 * self._done // max(self._total, 1)) > self._reported_tenths:
            self._reported_tenths = tenths
            self._write(f"{self._label}: {10 * tenths} % ({self._done} of {self._total})\n")

    def _draw_bar(self, detail: str) -> None:
        fraction = min(self._done / max(self._total, 1), 1.0)
        filled = "█" * round(fraction * BAR_WIDTH)
        seconds = int(time.monotonic() - self._started)
        count, elapsed = f"{self._done}/{self._total}", f"{seconds // 60}:{seconds % 60:02}"
        line = f"{self._label} {filled:░<{BAR_WIDTH}} {count} {elapsed} {detail}"
        self._write(f"\r{line[:LINE_WIDTH]}{CLEAR_TO_END}")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def track(items: Iterable[Item], *, label: str, total: int) -> Iterator[Item]:
    """Yield the items and show the progress; an item counts once the next one is requested."""
    with ProgressBar(label, total=total) as bar:
        for item in items:
            yield item
            bar.advance()
