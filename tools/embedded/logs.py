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


def read_log_tail(log: Path, *, lines: int = 3) -> str:
    """Return the last lines of a log, for an error message."""
    try:
        text = log.read_text(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.strip().splitlines()[-lines:])
