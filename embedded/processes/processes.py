"""Start processes that end with us, and end them."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from embedded.servers.accounts import Account

# Which signal, and how many seconds to wait for its effect before the next one.
Step = tuple[signal.Signals, float]
Ladder = tuple[Step, ...]

HURRIED_SECONDS = 1.0
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True)
class Ending:
    """A process that must go, and how."""

    pid: int
    ladder: Ladder
    leads_group: bool
    has_ended: Callable[[], bool]


def start_in_session(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    directory: Path,
    output: IO[bytes],
    account: Account | None = None,
    stdin: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own: Ctrl-C reaches us alone, its group is its family.

    Start it from a thread that lives as long as the process shall: Linux ends the process with it.
    """
    return subprocess.Popen(
        command,
        env=dict(environment),
        cwd=directory,
        stdin=stdin,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=end_with_parent(signal.SIGTERM),  # noqa: PLW1509 - see there
        **(account.popen_arguments if account else {}),
    )


def end_with_parent(number: signal.Signals) -> Callable[[], None]:
    """Return what a child must call, so that Linux sends it the signal when its parent dies.

    The watchdog does the same and more, in order; this is the net below it. PostgreSQL takes
    SIGTERM as "finish what is connected", so a worker can still record what it sent.
    What runs between fork and exec takes no lock, so other threads may hold theirs.
    """
    parent = os.getpid()

    def ask_linux() -> None:
        if _libc is None:
            return
        _libc.prctl(PR_SET_PDEATHSIG, int(number))
        if os.getppid() != parent:
            os._exit(1)

    return ask_linux


def is_gone(pid: int) -> bool:
    """Say whether a process that is not our child has ended. A zombie has."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return False


def end_all(endings: Iterable[Ending], *, is_hurried: Callable[[], bool] = lambda: False) -> None:
    """End processes side by side, each by its own ladder, with what is left of their groups.

    is_hurried: asked all the time; once true, no step of a ladder takes longer than a second.
    """
    climbs = [_Climb(ending) for ending in endings]
    while climbs:
        climbs = [climb for climb in climbs if climb.goes_on(hurried=is_hurried())]
        time.sleep(0.02)


class _Climb:
    """One process on its ladder."""

    def __init__(self, ending: Ending) -> None:
        self.ending = ending
        self.steps = iter(ending.ladder)
        self.step_ends_at = 0.0

    def goes_on(self, *, hurried: bool) -> bool:
        if self.ending.has_ended():
            self._sweep()
            return False
        if hurried:
            self.step_ends_at = min(self.step_ends_at, time.monotonic() + HURRIED_SECONDS)
        if time.monotonic() < self.step_ends_at:
            return True
        step = next(self.steps, None)
        if step is None:
            return False
        number, seconds = step
        self.step_ends_at = time.monotonic() + seconds
        self._send(number)
        return True

    def _send(self, number: signal.Signals) -> None:
        if number == signal.SIGKILL:
            self._sweep()
        with suppress(ProcessLookupError, PermissionError):
            os.kill(self.ending.pid, number)

    def _sweep(self) -> None:
        # What a process leaves behind in its group must not outlive it.
        if self.ending.leads_group:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.ending.pid, signal.SIGKILL)
