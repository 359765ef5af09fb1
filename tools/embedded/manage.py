"""`bin/manage`: run manage.py with the servers of `bin/run`, or with servers started for this command."""

import os
import sys
import time
from pathlib import Path

from tools.embedded.data_dir_lock import LauncherRuntime, join_launcher, try_acquire_lock, wait_for_joined_commands
from tools.embedded.environment import enter_environment
from tools.embedded.errors import CannotStart
from tools.embedded.given_settings import override, resolve_files
from tools.embedded.locations import REPOSITORY
from tools.embedded.processes.foreground import run_in_foreground
from tools.embedded.processes.signals import raise_on_signals
from tools.embedded.processes.supervisor import Supervisor
from tools.embedded.servers.startup import start_servers
from tools.embedded.settings import LauncherSettings, read_settings

JOIN_TIMEOUT_SECONDS = 120


def manage(arguments: list[str]) -> int:
    """Run manage.py and return its exit code."""
    settings = read_settings(os.environ)
    settings.data.create()
    enter_environment("requirements-embedded.txt")
    command = [sys.executable, str(REPOSITORY / "manage.py"), *arguments]
    deadline = time.monotonic() + JOIN_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        runtime = join_launcher(settings.data)
        if runtime:
            _exec_manage(command, runtime)
        lock = try_acquire_lock(settings.data)
        if lock is not None:
            return _run_with_temporary_servers(command, settings, lock)
        time.sleep(0.1)  # another launcher is starting or stopping
    raise CannotStart(f"Another launcher using {settings.data.path} is stuck. Stop it and try again.")


def _exec_manage(command: list[str], runtime: LauncherRuntime) -> None:
    """Replace this process by manage.py, which keeps input, output and exit code."""
    os.chdir(_caller_directory())
    environment = {**override(runtime.environment, resolve_files(os.environ)), "MODE": "embedded"}
    environment.pop("POSTRIDER_CALLED_FROM", None)
    os.execve(command[0], command, environment)  # noqa: S606 - no shell wanted


def _run_with_temporary_servers(command: list[str], settings: LauncherSettings, lock: int) -> int:
    raise_on_signals()
    supervisor = Supervisor(lock=lock, remove_at_end=settings.data.runtime)
    try:
        environment = start_servers(settings, os.environ, supervisor, kind="manage")
        return run_in_foreground(
            command, environment=environment, watchdog=supervisor.watchdog, directory=_caller_directory()
        )
    finally:
        settings.data.runtime.unlink(missing_ok=True)
        try:
            wait_for_joined_commands(settings.data)
        finally:
            supervisor.stop()


def _caller_directory() -> Path:
    return Path(os.environ.get("POSTRIDER_CALLED_FROM") or REPOSITORY)
