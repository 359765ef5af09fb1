"""Terminal output: progress on standard error, results on standard output."""

import sys
from contextlib import suppress
from typing import TextIO


def print_status(line: str) -> None:
    """Print progress or an error to standard error; scripts read standard output."""
    _write(sys.stderr, line)


def print_output(text: str) -> None:
    """Print a result to standard output."""
    _write(sys.stdout, text)


def _write(stream: TextIO, text: str) -> None:
    # A closed terminal must not keep the launcher from stopping the servers.
    with suppress(OSError, ValueError):
        stream.write(text + "\n")
        stream.flush()
