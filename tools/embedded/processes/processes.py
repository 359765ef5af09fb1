"""Processes that exit with the launcher, and how they are stopped."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Self

from core.lib.forking import exit_with_parent
from tools.embedded.servers.accounts import SystemAccount

# A signal, and the seconds to wait for the process to exit before the next signal.
StopStep = tuple[signal.Signals, float]
StopSequence = tuple[StopStep, ...]

URGENT_STEP_SECONDS = 1.0


@dataclass(frozen=True)
class StoppableProcess:
    """A process to stop, with the signals to send and a check for its exit."""

    pid: int
    stop_sequence: StopSequence
    leads_group: bool
    has_exited: Callable[[], bool]

    @classmethod
    def of_child(cls, process: "subprocess.Popen[bytes]", stop_sequence: StopSequence) -> Self:
        """Return a child of this process, which leads a process group."""
        return cls(process.pid, stop_sequence, True, lambda: process.poll() is not None)

    def stop(self, is_urgent: Callable[[], bool]) -> None:
        """Send the signals of the stop sequence until the process has exited."""
        for number, seconds in self.stop_sequence:
            if self.has_exited():
                break
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)
            wait_until(lambda: self.has_exited() or is_urgent(), seconds=seconds)
            wait_until(self.has_exited, seconds=min(seconds, URGENT_STEP_SECONDS) if is_urgent() else 0)
        # Children must not outlive the process.
        if self.leads_group:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)


def start_in_session(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    directory: Path,
    output: IO[bytes],
    account: SystemAccount | None = None,
    stdin: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start a process in a new session, so that Ctrl-C reaches only the launcher.

    Call it from a thread that lives as long as the process: Linux signals the process when that thread exits.
    """
    return subprocess.Popen(
        command,
        env=dict(environment),
        cwd=directory,
        stdin=stdin,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=signal_on_parent_exit(signal.SIGTERM),  # noqa: PLW1509 - see its docstring
        **(account.popen_options if account else {}),
    )


def signal_on_parent_exit(number: signal.Signals) -> Callable[[], None]:
    """Return a `preexec_fn` that makes Linux send the child this signal when its parent exits.

    This is a fallback for the watchdog, which stops processes in order. PostgreSQL finishes open sessions on
    SIGTERM, so a worker can still record its deliveries.
    The function takes no lock between fork and exec, so other threads may have theirs locked.
    """
    return partial(exit_with_parent, os.getpid(), number=number)


def has_exited(pid: int) -> bool:
    """Return whether a process, not necessarily a child, has exited. A zombie has."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return False


def wait_until(is_true: Callable[[], bool], *, seconds: float, interval_seconds: float = 0.02) -> bool:
    """Poll a condition; return whether it became true within the timeout."""
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(interval_seconds)
    return True


def stop_processes(processes: Iterable[StoppableProcess], *, is_urgent: Callable[[], bool] = lambda: False) -> None:
    """Stop processes in parallel, each by its own stop sequence, and kill the rest of their process groups.

    is_urgent: polled; once true, no step of a stop sequence takes longer than a second.
    """
    threads = [threading.Thread(target=process.stop, args=[is_urgent]) for process in processes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
