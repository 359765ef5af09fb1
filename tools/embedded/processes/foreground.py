"""Foreground commands, which use the terminal and pass their exit code on."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from tools.embedded.locations import REPOSITORY
from tools.embedded.processes.processes import StopSequence, signal_on_parent_exit
from tools.embedded.processes.signals import STOP_SIGNALS, raise_on_signals
from tools.embedded.processes.watchdog import Watchdog

# pytest and manage.py clean up on SIGINT, but not on SIGTERM.
STOP_SEQUENCE: StopSequence = ((signal.SIGINT, 10), (signal.SIGTERM, 5), (signal.SIGKILL, 5))


def run_in_foreground(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    watchdog: Watchdog,
    directory: Path = REPOSITORY,
) -> int:
    """Run the command; return its exit code, or 128 + n when signal n ended it, as shells do."""
    process = subprocess.Popen(
        command,
        env=dict(environment),
        cwd=directory,
        preexec_fn=signal_on_parent_exit(signal.SIGINT),  # noqa: PLW1509 - see its docstring
    )
    watchdog.watch(process.pid, STOP_SEQUENCE, stage=0, leads_group=False)
    _forward_signals(process)
    code = process.wait()
    raise_on_signals()
    watchdog.unwatch(process.pid)
    return code if code >= 0 else 128 - code


def _forward_signals(process: subprocess.Popen[bytes]) -> None:
    """Forward stop signals to the command; the launcher exits after it."""

    def forward(number: int, _frame: FrameType | None) -> None:
        # The terminal already sends Ctrl-C to the foreground group; a second SIGINT would interrupt its clean-up.
        if number != signal.SIGINT or not _in_foreground():
            with suppress(ProcessLookupError):
                process.send_signal(number)

    for number in STOP_SIGNALS:
        signal.signal(number, forward)


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
