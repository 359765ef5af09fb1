"""Sizes of a benchmark: the measured one, and the smallest real one for `python -m tools.benchmarks --smoke`."""

import os
from typing import TypeVar

# Also set in the environment of the processes that a benchmark starts.
SMOKE = "BENCHMARKS_SMOKE"
Size = TypeVar("Size")


def size(measured: Size, *, smoke: Size) -> Size:
    """Return the measured size, or the smallest one in a smoke run, whose figures mean nothing."""
    return smoke if SMOKE in os.environ else measured
