"""Watchdog process that stops everything when the launcher is killed (kill -9, out of memory).

The launcher writes to a pipe which processes to stop and how. When the pipe closes, the launcher has exited, and
the watchdog stops the processes that are still registered: the service first, so that its worker can record its
deliveries, then servers. The watchdog shares the launcher's lock, so a new launcher waits for it.

    python -m tools.embedded.processes.watchdog < pipe
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tools.embedded.locations import REPOSITORY
from tools.embedded.processes.processes import StoppableProcess, StopSequence, has_exited, stop_processes
from tools.embedded.servers.server_directories import remove_temporary_directory


class Watchdog:
    """The launcher's end of the pipe."""

    def __init__(self, *, lock: int | None = None) -> None:
        # A new session, so that a signal to the launcher's group does not reach the watchdog.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tools.embedded.processes.watchdog"],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=() if lock is None else (lock,),
        )

    def watch(self, pid: int, stop_sequence: StopSequence, *, stage: int, leads_group: bool = True) -> None:
        """Register a process to stop when the launcher exits; lower stages stop first."""
        steps = [[int(number), seconds] for number, seconds in stop_sequence]
        self._send(action="watch", pid=pid, stop_sequence=steps, stage=stage, leads_group=leads_group)

    def unwatch(self, pid: int) -> None:
        """Unregister a process that has exited."""
        self._send(action="unwatch", pid=pid)

    def remove_at_end(self, path: Path) -> None:
        """Register a file or directory to remove after all processes have stopped."""
        self._send(action="remove", path=str(path))

    def close(self) -> None:
        """Close the pipe and wait until the watchdog has finished its clean-up."""
        if self._process.stdin:
            with suppress(OSError):
                self._process.stdin.close()
        self._process.wait()

    def _send(self, **message: Any) -> None:
        # If the watchdog was killed, the launcher still stops all its processes.
        if self._process.stdin:
            with suppress(OSError):
                self._process.stdin.write(json.dumps(message).encode() + b"\n")
                self._process.stdin.flush()


def main() -> None:
    """Read messages until the launcher has exited, then stop its processes stage by stage and remove its files."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    processes: dict[int, dict[str, Any]] = {}
    paths: list[Path] = []
    for line in sys.stdin:
        # The last line is incomplete if the launcher was killed while writing it.
        with suppress(ValueError):
            message = json.loads(line)
            if message["action"] == "watch":
                processes[message["pid"]] = message
            elif message["action"] == "unwatch":
                processes.pop(message["pid"], None)
            else:
                paths.append(Path(message["path"]))
    os.chdir("/")
    for stage in sorted({message["stage"] for message in processes.values()}):
        stop_processes(_stoppable(message) for message in processes.values() if message["stage"] == stage)
    for path in paths:
        remove_temporary_directory(path) if path.is_dir() else path.unlink(missing_ok=True)


def _stoppable(message: dict[str, Any]) -> StoppableProcess:
    stop_sequence = tuple((signal.Signals(number), seconds) for number, seconds in message["stop_sequence"])
    pid = message["pid"]
    return StoppableProcess(pid, stop_sequence, message["leads_group"], partial(has_exited, pid))


if __name__ == "__main__":
    main()
