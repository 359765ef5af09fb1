"""Run a command for the person at the terminal: it has the terminal, and its exit code is ours."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from embedded.locations import REPOSITORY
from embedded.processes.processes import Ladder, end_with_parent
from embedded.processes.signals import ENDING, raise_on_signals
from embedded.processes.watchdog import Watchdog

# pytest and manage.py clean up on SIGINT, and end without a word on SIGTERM.
LADDER: Ladder = ((signal.SIGINT, 10), (signal.SIGTERM, 5), (signal.SIGKILL, 5))


def run_attended(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    watchdog: Watchdog,
    directory: Path = REPOSITORY,
) -> int:
    """Return the command's exit code, 128 + n when signal n ended it, as shells do."""
    process = subprocess.Popen(
        command,
        env=dict(environment),
        cwd=directory,
        preexec_fn=end_with_parent(signal.SIGINT),  # noqa: PLW1509 - see there
    )
    watchdog.watch(process.pid, LADDER, stage=0, leads_group=False)
    _pass_signals_on(process)
    code = process.wait()
    raise_on_signals()
    watchdog.forget(process.pid)
    return code if code >= 0 else 128 - code


def _pass_signals_on(process: subprocess.Popen[bytes]) -> None:
    """Leave the decision to end with the command; we end when it has."""

    def pass_on(number: int, _frame: FrameType | None) -> None:
        # Ctrl-C reaches the whole foreground of a terminal; once more would disturb its clean-up.
        if number != signal.SIGINT or not _in_foreground():
            with suppress(ProcessLookupError):
                process.send_signal(number)

    for number in ENDING:
        signal.signal(number, pass_on)


def _in_foreground() -> bool:
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
