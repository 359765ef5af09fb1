"""A server that runs: what its users may know and do."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from embedded.processes.processes import Ending, Ladder, end_all
from embedded.servers.homes import remove_temporary_home


@dataclass(frozen=True)
class Server:
    """A running server. `url` holds its password; `temporary` is a directory to remove with it."""

    name: str
    url: str
    port: int
    process: subprocess.Popen[bytes]
    ladder: Ladder
    temporary: Path | None = None

    @property
    def pid(self) -> int:
        """The process to send signals to."""
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.process.poll() is None

    def stop(self) -> None:
        """End the server in good order and wait for it. May be called twice."""
        end_all([self.ending])
        if self.temporary:
            remove_temporary_home(self.temporary)

    @property
    def ending(self) -> Ending:
        """How to end it, for those who end several processes at once."""
        return Ending(self.pid, self.ladder, True, lambda: not self.is_alive)


def last_words(log: Path, *, lines: int = 3) -> str:
    """Return the end of a log, for a sentence about a server that did not come up."""
    try:
        text = log.read_text(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.strip().splitlines()[-lines:])
