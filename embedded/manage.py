"""`bin/manage`: manage.py with the servers of a DATA_DIR, those of `bin/run` or for the moment."""

import os
import sys
import time
from pathlib import Path

from embedded.data_dir_lock import Runtime, join_as_guest, try_to_claim, wait_for_guests, write_runtime
from embedded.environment import enter_environment
from embedded.errors import CannotStart
from embedded.locations import REPOSITORY
from embedded.processes.attended import run_attended
from embedded.processes.signals import raise_on_signals
from embedded.processes.supervisor import Supervisor
from embedded.processes.watchdog import Watchdog
from embedded.servers.startup import start_servers
from embedded.settings import Settings, read_settings, service_environment, settings_of_service

PATIENCE_SECONDS = 120


def manage(arguments: list[str]) -> int:
    """Return the exit code of manage.py."""
    settings = read_settings(os.environ)
    settings.data.create()
    enter_environment("requirements-embedded.txt")
    command = [sys.executable, str(REPOSITORY / "manage.py"), *arguments]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        runtime = join_as_guest(settings.data)
        if runtime:
            _become(command, runtime)
        lock = try_to_claim(settings.data)
        if lock is not None:
            return _run_with_own_servers(command, settings, lock)
        time.sleep(0.1)  # a launcher is starting or ending
    raise CannotStart(f"Another launcher on {settings.data.path} neither starts nor ends: stop it.")


def _become(command: list[str], runtime: Runtime) -> None:
    """Go on as manage.py: input, output and exit code pass through by themselves."""
    os.chdir(_caller())
    os.execve(command[0], command, runtime.environment | _given() | {"MODE": "embedded"})  # noqa: S606 - no shell wanted


def _run_with_own_servers(command: list[str], settings: Settings, lock: int) -> int:
    raise_on_signals()
    watchdog = Watchdog(lock=lock)
    watchdog.withdraw_at_end(settings.data.runtime)
    supervisor = Supervisor(watchdog)
    try:
        urls = start_servers(settings.data, os.environ, supervisor)
        environment = service_environment(settings, _given(), urls)
        servers = {s.name: s.process.pid for s in supervisor.services if s.process}
        runtime = Runtime("manage", os.getpid(), settings_of_service(environment), servers)
        write_runtime(settings.data, runtime)
        return run_attended(command, environment=environment, watchdog=watchdog, directory=_caller())
    finally:
        settings.data.runtime.unlink(missing_ok=True)
        try:
            wait_for_guests(settings.data)
        finally:
            supervisor.stop()
            watchdog.dismiss()


def _caller() -> Path:
    return Path(os.environ.get("POSTRIDER_CALLED_FROM") or REPOSITORY)


def _given() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if name != "POSTRIDER_CALLED_FROM"}
