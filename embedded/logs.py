"""Log files, one per process, with a size limit."""

from pathlib import Path
from typing import IO

MAX_BYTES = 10_000_000


def open_log(path: Path) -> IO[bytes]:
    """Open a log file for appending; a file over MAX_BYTES is first renamed to `.1`, replacing the previous one."""
    if path.exists() and path.stat().st_size > MAX_BYTES:
        path.rename(path.with_name(f"{path.name}.1"))
    path.touch(mode=0o600)  # logs contain email addresses
    return path.open("ab")
