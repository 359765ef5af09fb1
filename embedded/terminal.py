"""What the person at the terminal reads: progress on standard error, results on standard output."""

import sys
from contextlib import suppress
from typing import TextIO


def say(line: str) -> None:
    """Tell of progress. Scripts read standard output, so it stays clean."""
    _write(sys.stderr, line)


def show(text: str) -> None:
    """Print a result."""
    _write(sys.stdout, text)


def _write(stream: TextIO, text: str) -> None:
    # A terminal that was closed must not keep the launcher from stopping the servers.
    with suppress(OSError, ValueError):
        stream.write(text + "\n")
        stream.flush()
