"""One log file per process, kept from growing for good."""

from pathlib import Path
from typing import IO

LARGEST_BYTES = 10_000_000


def open_log(path: Path) -> IO[bytes]:
    """Open a log to append to; one that has grown large is put aside, replacing the one before."""
    if path.exists() and path.stat().st_size > LARGEST_BYTES:
        path.rename(path.with_name(f"{path.name}.1"))
    path.touch(mode=0o600)  # addresses of people stand in it
    return path.open("ab")
