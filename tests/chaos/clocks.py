"""A process whose wall clock is wrong: Debian's libfaketime, with the monotonic clocks left as they are."""

import functools
from pathlib import Path

import pytest

from tests.standards.tools import program

# By which a machine without NTP, with a wrong zone, or with the battery of its clock gone may be off.
OFFSETS_SECONDS = (-26 * 3600, -3600, -600, 600, 3600, 26 * 3600)


@functools.cache
def library() -> Path | None:
    """Return the library that a process is given, installed where that is possible; None where it is not."""
    try:
        program("faketime", package="faketime")
    except pytest.skip.Exception:
        return None
    return next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


def wrong_clock(seconds: int) -> dict[str, str]:
    """Return the variables under which a process sees the time shifted."""
    assert library()
    return {"LD_PRELOAD": str(library()), "FAKETIME": f"{seconds:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
