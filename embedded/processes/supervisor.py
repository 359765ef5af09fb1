"""Keep processes running, and end them all."""

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from embedded.errors import CannotStart
from embedded.processes.processes import Ending, Ladder, end_all
from embedded.processes.signals import held, is_impatient, only_note_signals
from embedded.processes.watchdog import Watchdog
from embedded.terminal import say

# Stages of the end: programs go before the servers they use.
PROGRAM, SERVER = 0, 1

LONGEST_WAIT_SECONDS = 30.0
# Whoever ran for so long is well: the next failure counts as the first.
WELL_SECONDS = 60.0


@dataclass
class Service:
    """A process to keep running. launch: start it, ready or not; raises CannotStart."""

    name: str
    launch: Callable[[], subprocess.Popen[bytes]]
    ladder: Ladder
    stage: int
    log: str
    process: subprocess.Popen[bytes] | None = None
    failures: int = 0
    started_at: float = 0.0
    due_at: float = 0.0


def wait_before_restart(failures: int) -> float:
    """Return seconds: 1, 2, 4, … 30 after the first, second, third … failure in a row."""
    return min(2.0 ** (failures - 1), LONGEST_WAIT_SECONDS)


class Supervisor:
    """The processes of one launcher."""

    def __init__(self, watchdog: Watchdog) -> None:
        self.services: list[Service] = []
        self._watchdog = watchdog

    def start(self, service: Service) -> None:
        """Start a service and keep it from now on."""
        self.services.append(service)
        self._launch(service)

    def tend(self) -> None:
        """Look after every service once: note who died, start again who is due."""
        for service in self.services:
            if service.process is None:
                self._restart_if_due(service)
            elif service.process.poll() is not None:
                self._note_death(service, service.process)

    def stop(self) -> None:
        """End everything, programs before the servers they use; a second signal makes it quick."""
        only_note_signals()
        for stage in (PROGRAM, SERVER):
            living = [(s, s.process) for s in self.services if s.stage == stage and s.process]
            end_all((_ending_of(*pair) for pair in living), is_hurried=is_impatient)
            for _, process in living:
                self._watchdog.forget(process.pid)

    def _launch(self, service: Service) -> None:
        with held():
            service.started_at = time.monotonic()
            service.process = service.launch()
            self._watchdog.watch(service.process.pid, service.ladder, stage=service.stage)

    def _restart_if_due(self, service: Service) -> None:
        if time.monotonic() < service.due_at:
            return
        try:
            self._launch(service)
        except CannotStart as reason:
            self._put_off(service, str(reason))

    def _note_death(self, service: Service, process: subprocess.Popen[bytes]) -> None:
        # What it left behind in its group would quarrel with its successor.
        end_all([_ending_of(service, process)])
        self._watchdog.forget(process.pid)
        service.process = None
        if time.monotonic() - service.started_at > WELL_SECONDS:
            service.failures = 0
        self._put_off(service, f"{service.name} ended with code {process.returncode}")

    def _put_off(self, service: Service, reason: str) -> None:
        service.failures += 1
        seconds = wait_before_restart(service.failures)
        service.due_at = time.monotonic() + seconds
        say(f"{reason}; starting it again in {seconds:.0f} s (see {service.log}).")


def _ending_of(service: Service, process: subprocess.Popen[bytes]) -> Ending:
    return Ending(process.pid, service.ladder, True, lambda: process.poll() is not None)
