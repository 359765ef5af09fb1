"""Wrong wall clocks for processes, with Debian's libfaketime; monotonic clocks are not changed."""

import functools
from pathlib import Path

import pytest

from tests.standards.tools import program

# Typical errors of a machine without NTP, with a wrong time zone, or with an empty clock battery.
OFFSETS_SECONDS = (-26 * 3600, -3600, -600, 600, 3600, 26 * 3600)


@functools.cache
def faketime_library() -> Path | None:
    """Return the path of libfaketime, installed if possible; None if it is not available."""
    try:
        program("faketime", package="faketime")
    except pytest.skip.Exception:
        return None
    return next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


def wrong_clock(seconds: int) -> dict[str, str]:
    """Return the environment variables that shift the wall clock of a process."""
    assert faketime_library()
    return {"LD_PRELOAD": str(faketime_library()), "FAKETIME": f"{seconds:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
