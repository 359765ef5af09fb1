"""Lock that allows one launcher per DATA_DIR; the kernel releases it when all its holders have exited.

The watchdog shares the lock, so the lock is free only when every process has ended. A `bin/manage` command may
join the servers of another `bin/manage`, which then waits for it before stopping them.
"""

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tools.embedded.errors import CannotStart
from tools.embedded.locations import DataDirectory, write_private
from tools.embedded.processes.processes import has_exited, wait_until
from tools.embedded.terminal import print_status

# A stopping worker may take a minute.
LOCK_TIMEOUT_SECONDS = 90

LauncherKind = Literal["run", "manage"]


@dataclass(frozen=True)
class LauncherRuntime:
    """Description of a running launcher: its process, the environment of its commands, its servers' pids."""

    kind: LauncherKind
    pid: int
    environment: dict[str, str]
    servers: dict[str, int]


def try_acquire_lock(data: DataDirectory) -> int | None:
    """Return the lock's descriptor, None when another launcher or its watchdog has the lock."""
    return _flock(data.private / "launcher.lock", fcntl.LOCK_EX | fcntl.LOCK_NB)


def acquire_lock(data: DataDirectory) -> int:
    """Return the lock's descriptor; wait for a launcher that is stopping.

    Raises CannotStart when the service already runs on this DATA_DIR.
    """
    acquired: list[int] = []

    def try_acquire() -> bool:
        refuse_if_running(data)
        descriptor = try_acquire_lock(data)
        acquired.extend([] if descriptor is None else [descriptor])
        return bool(acquired)

    if try_acquire():
        return acquired[0]
    print_status(f"Waiting for another launcher on {data.path} to stop …")
    if not wait_until(try_acquire, seconds=LOCK_TIMEOUT_SECONDS, interval_seconds=0.1):
        raise CannotStart(f"Another launcher is using {data.path}. Stop it, or set DATA_DIR.")
    return acquired[0]


def refuse_if_running(data: DataDirectory) -> None:
    """Raise CannotStart when `bin/run` runs on this DATA_DIR."""
    runtime = read_runtime(data)
    if runtime and runtime.kind == "run" and not has_exited(runtime.pid) and not is_lock_free(data):
        address = f"http://127.0.0.1:{runtime.environment.get('PORT')}"
        raise CannotStart(
            f"Postrider is already running on {data.path} at {address} (process {runtime.pid})."
            " Stop it first, or set another DATA_DIR and PORT."
        )


def is_lock_free(data: DataDirectory) -> bool:
    """Return whether no launcher is starting, running or stopping."""
    descriptor = try_acquire_lock(data)
    if descriptor is None:
        return False
    os.close(descriptor)
    return True


def join_launcher(data: DataDirectory) -> LauncherRuntime | None:
    """Return the runtime of the running launcher, None when there is none to join.

    A `bin/manage` launcher keeps its servers until this process exits, even after an exec.
    """
    descriptor = _flock(data.private / "guests.lock", fcntl.LOCK_SH | fcntl.LOCK_NB)
    if descriptor is None:
        return None
    runtime = read_runtime(data)
    if runtime is None or has_exited(runtime.pid) or is_lock_free(data):
        os.close(descriptor)
        return None
    os.set_inheritable(descriptor, True)
    return runtime


def wait_for_joined_commands(data: DataDirectory) -> None:
    """Wait until no joined command is left. Remove the runtime file first, so that no other command joins."""
    _flock(data.private / "guests.lock", fcntl.LOCK_EX)


def write_runtime(data: DataDirectory, runtime: LauncherRuntime) -> None:
    """Write the runtime file, which lets other commands join."""
    write_private(data.runtime, json.dumps(vars(runtime)))


def read_runtime(data: DataDirectory) -> LauncherRuntime | None:
    """Return the runtime of the last launcher that has not removed its file; it may be dead."""
    try:
        values: dict[str, Any] = json.loads(data.runtime.read_text())
        return LauncherRuntime(**values)
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _flock(path: Path, operation: int) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, operation)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
