"""End everything when the launcher dies without a word (kill -9, out of memory).

The watchdog is a process of its own that reads what the launcher writes into a pipe: whom to end
and how. When the pipe closes, the launcher is gone, and what it did not take back is ended:
programs first, so that a worker can still record what it sent, then servers. The watchdog shares
the launcher's lock, so a new launcher waits until it is done.

    python -m embedded.processes.watchdog < pipe
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from embedded.locations import REPOSITORY
from embedded.processes.processes import Ending, Ladder, end_all, is_gone
from embedded.servers.homes import remove_temporary_home


class Watchdog:
    """The launcher's end of the pipe."""

    def __init__(self, *, lock: int | None = None) -> None:
        # In a session of its own: what kills the launcher's group must not kill this.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "embedded.processes.watchdog"],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=() if lock is None else (lock,),
        )

    def watch(self, pid: int, ladder: Ladder, *, stage: int, leads_group: bool = True) -> None:
        """End the process when the launcher dies; lower stages end first."""
        steps = [[int(number), seconds] for number, seconds in ladder]
        self._tell(do="watch", pid=pid, ladder=steps, stage=stage, leads_group=leads_group)

    def forget(self, pid: int) -> None:
        """Take a process back: it ended."""
        self._tell(do="forget", pid=pid)

    def withdraw_at_end(self, path: Path) -> None:
        """Remove a file that says that the servers run, before they end."""
        self._tell(do="withdraw", path=str(path))

    def remove_at_end(self, directory: Path) -> None:
        """Remove a directory with all that is in it, after all has ended."""
        self._tell(do="remove", path=str(directory))

    def dismiss(self) -> None:
        """Let it finish what is left, and wait."""
        if self._process.stdin:
            with suppress(OSError):
                self._process.stdin.close()
        self._process.wait()

    def _tell(self, **message: Any) -> None:
        # Whoever killed the watchdog takes its place: the launcher still ends all it started.
        if self._process.stdin:
            with suppress(OSError):
                self._process.stdin.write(json.dumps(message).encode() + b"\n")
                self._process.stdin.flush()


@dataclass
class Estate:
    """What is to be done when the launcher is gone."""

    members: dict[int, dict[str, Any]] = field(default_factory=dict)
    withdrawn: list[Path] = field(default_factory=list)
    removed: list[Path] = field(default_factory=list)

    def note(self, message: dict[str, Any]) -> None:
        """Take down what the launcher says."""
        if message["do"] == "watch":
            self.members[message["pid"]] = message
        elif message["do"] == "forget":
            self.members.pop(message["pid"], None)
        elif message["do"] == "withdraw":
            self.withdrawn.append(Path(message["path"]))
        else:
            self.removed.append(Path(message["path"]))

    def settle(self) -> None:
        """End everything, stage by stage."""
        for path in self.withdrawn:
            path.unlink(missing_ok=True)
        for stage in sorted({member["stage"] for member in self.members.values()}):
            members = [m for m in self.members.values() if m["stage"] == stage]
            end_all(_ending_of(member) for member in members)
        for directory in self.removed:
            remove_temporary_home(directory)


def _ending_of(member: dict[str, Any]) -> Ending:
    ladder = tuple((signal.Signals(number), seconds) for number, seconds in member["ladder"])
    pid = member["pid"]
    return Ending(pid, ladder, member["leads_group"], partial(is_gone, pid))


def main() -> None:
    """Listen until the launcher is gone, then settle."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    estate = Estate()
    for line in sys.stdin:
        # A launcher killed in the middle of a word leaves half a line.
        with suppress(ValueError):
            estate.note(json.loads(line))
    os.chdir("/")
    estate.settle()


if __name__ == "__main__":
    main()
