"""Supervisor that restarts processes when they exit, and stops them all, with a watchdog for its own end.

The processes of the application are not among them: they share the memory of their parent, `manage.py serve`, which
restarts them (docs/decisions/0164).
"""

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.embedded.errors import CannotStart
from tools.embedded.processes.processes import StoppableProcess, StopSequence, stop_processes
from tools.embedded.processes.signals import defer_signals, record_signals, was_signalled_again
from tools.embedded.processes.watchdog import Watchdog
from tools.embedded.terminal import print_status

# Stages of shutdown: the service stops before the servers that it uses.
SERVICE_STAGE, SERVER_STAGE = 0, 1

MAX_RESTART_DELAY_SECONDS = 30.0
# After running this long, a process has its failure count reset.
STABLE_SECONDS = 60.0


@dataclass
class SupervisedProcess:
    """A process to keep running. launch: start it without waiting; raises CannotStart."""

    launch: Callable[[], subprocess.Popen[bytes]]
    stop_sequence: StopSequence
    stage: int
    log: Path
    process: subprocess.Popen[bytes] | None = None
    failures: int = 0
    started_at: float = 0.0
    restart_at: float = 0.0

    @property
    def name(self) -> str:
        return self.log.stem


class Supervisor:
    """The processes of one launcher.

    lock: that of the DATA_DIR, which the watchdog keeps until it has stopped them.
    remove_at_end: a file or directory that the watchdog removes afterwards.
    """

    def __init__(self, *, remove_at_end: Path, lock: int | None = None) -> None:
        self.processes: list[SupervisedProcess] = []
        self.watchdog = Watchdog(lock=lock)
        self.watchdog.remove_at_end(remove_at_end)

    def start(self, supervised: SupervisedProcess) -> None:
        """Start a process and supervise it from now on."""
        self.processes.append(supervised)
        self._launch(supervised)

    def check(self) -> None:
        """Check every process once: schedule restarts for exited ones, and start the ones that are due."""
        for supervised in self.processes:
            if supervised.process is None:
                self._restart_if_due(supervised)
            elif supervised.process.poll() is not None:
                self._handle_exit(supervised, supervised.process)

    def stop(self) -> None:
        """Stop everything, the service before its servers; a second signal shortens the waits."""
        record_signals()
        for stage in (SERVICE_STAGE, SERVER_STAGE):
            running = [(s, s.process) for s in self.processes if s.stage == stage and s.process]
            stop_processes(
                [StoppableProcess.of_child(process, s.stop_sequence) for s, process in running],
                is_urgent=was_signalled_again,
            )
            for _, process in running:
                self.watchdog.unwatch(process.pid)
        self.watchdog.close()

    def _launch(self, supervised: SupervisedProcess) -> None:
        with defer_signals():
            supervised.started_at = time.monotonic()
            supervised.process = supervised.launch()
            self.watchdog.watch(supervised.process.pid, supervised.stop_sequence, stage=supervised.stage)

    def _restart_if_due(self, supervised: SupervisedProcess) -> None:
        if time.monotonic() < supervised.restart_at:
            return
        try:
            self._launch(supervised)
        except CannotStart as reason:
            self._schedule_restart(supervised, str(reason))

    def _handle_exit(self, supervised: SupervisedProcess, process: subprocess.Popen[bytes]) -> None:
        # Leftover processes in its group would conflict with the new process.
        stop_processes([StoppableProcess.of_child(process, supervised.stop_sequence)])
        self.watchdog.unwatch(process.pid)
        supervised.process = None
        if time.monotonic() - supervised.started_at > STABLE_SECONDS:
            supervised.failures = 0
        self._schedule_restart(supervised, f"{supervised.name} exited with code {process.returncode}")

    def _schedule_restart(self, supervised: SupervisedProcess, reason: str) -> None:
        supervised.failures += 1
        # 1, 2, 4, … 30 s after the first, second, third … failure in a row.
        seconds = min(2.0 ** (supervised.failures - 1), MAX_RESTART_DELAY_SECONDS)
        supervised.restart_at = time.monotonic() + seconds
        print_status(f"{reason}; restarting in {seconds:.0f} s (see {supervised.log}).")
