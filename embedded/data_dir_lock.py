"""One launcher per DATA_DIR: a lock that the kernel lets go of when its holders are gone.

The watchdog holds the lock too, so it is free only when everything has ended. Guests are
`bin/manage` processes that use the servers of another `bin/manage`, which waits for them.
"""

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from embedded.errors import CannotStart
from embedded.locations import DataDirectory, write_private
from embedded.processes.processes import is_gone
from embedded.processes.waiting import wait_until
from embedded.terminal import say

# A worker that ends may take a minute.
PATIENCE_SECONDS = 90

Kind = Literal["run", "manage"]


@dataclass(frozen=True)
class Runtime:
    """What a launcher says of itself while its servers run."""

    kind: Kind
    pid: int
    environment: dict[str, str]
    servers: dict[str, int]


def try_to_claim(data: DataDirectory) -> int | None:
    """Return the lock's descriptor, None when another launcher or its watchdog holds it."""
    return _lock(data.private / "launcher.lock", fcntl.LOCK_EX | fcntl.LOCK_NB)


def claim(data: DataDirectory) -> int:
    """Return the lock's descriptor; wait for a launcher that is ending.

    Raises CannotStart when the service already runs on this DATA_DIR.
    """
    held: list[int] = []

    def take() -> bool:
        refuse_if_running(data)
        descriptor = try_to_claim(data)
        held.extend([] if descriptor is None else [descriptor])
        return bool(held)

    if take():
        return held[0]
    say(f"Waiting for another launcher on {data.path} to end …")
    if not wait_until(take, seconds=PATIENCE_SECONDS, interval_seconds=0.1):
        raise CannotStart(f"Another launcher uses {data.path}: stop it, or set DATA_DIR.")
    return held[0]


def refuse_if_running(data: DataDirectory) -> None:
    """Raise CannotStart when `bin/run` runs on this DATA_DIR."""
    runtime = read_runtime(data)
    if runtime and runtime.kind == "run" and not is_gone(runtime.pid) and not is_unclaimed(data):
        address = f"http://127.0.0.1:{runtime.environment.get('PORT')}"
        raise CannotStart(
            f"Postrider already runs on {data.path} at {address} (process {runtime.pid}):"
            " stop it first, or set another DATA_DIR and PORT."
        )


def is_unclaimed(data: DataDirectory) -> bool:
    """Say whether no launcher, starting, running or ending, holds the lock."""
    descriptor = try_to_claim(data)
    if descriptor is None:
        return False
    os.close(descriptor)
    return True


def join_as_guest(data: DataDirectory) -> Runtime | None:
    """Return the running launcher's facts, None when there is none to join.

    Until this process and what it becomes by exec ends, a `bin/manage` launcher keeps its servers.
    """
    descriptor = _lock(data.private / "guests.lock", fcntl.LOCK_SH | fcntl.LOCK_NB)
    if descriptor is None:
        return None
    runtime = read_runtime(data)
    if runtime is None or is_gone(runtime.pid) or is_unclaimed(data):
        os.close(descriptor)
        return None
    os.set_inheritable(descriptor, True)
    return runtime


def wait_for_guests(data: DataDirectory) -> None:
    """Return when no guest is left. Withdraw the runtime file first, so that none comes."""
    _lock(data.private / "guests.lock", fcntl.LOCK_EX)


def write_runtime(data: DataDirectory, runtime: Runtime) -> None:
    """Invite guests."""
    write_private(data.runtime, json.dumps(vars(runtime)))


def read_runtime(data: DataDirectory) -> Runtime | None:
    """Return what the last launcher wrote and did not withdraw; it may be dead."""
    try:
        facts: dict[str, Any] = json.loads(data.runtime.read_text())
        return Runtime(**facts)
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _lock(path: Path, operation: int) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, operation)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
