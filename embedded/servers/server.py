"""Server process started by the launcher or by a test."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from embedded.processes.processes import StoppableProcess, StopSequence, stop_processes
from embedded.servers.server_directories import remove_temporary_directory


@dataclass(frozen=True)
class ManagedServer:
    """A running server. `url` includes its password; `temporary_directory` is removed when it stops."""

    name: str
    url: str
    port: int
    process: subprocess.Popen[bytes]
    stop_sequence: StopSequence
    temporary_directory: Path | None = None

    @property
    def pid(self) -> int:
        """The pid of the server's main process."""
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process is running."""
        return self.process.poll() is None

    def stop(self) -> None:
        """Stop the server and wait for its exit. May be called twice."""
        stop_processes([StoppableProcess(self.pid, self.stop_sequence, True, lambda: not self.is_alive)])
        if self.temporary_directory:
            remove_temporary_directory(self.temporary_directory)


def read_log_tail(log: Path, *, lines: int = 3) -> str:
    """Return the last lines of a log, for an error message."""
    try:
        text = log.read_text(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.strip().splitlines()[-lines:])
