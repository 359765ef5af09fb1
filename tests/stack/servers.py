"""Other programs that serve a test or a benchmark: each runs until the context ends, and must not end before."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.stack.stack import wait_for


@contextmanager
def running_server(
    command: Sequence[str], *, is_ready: Callable[[], Any], log: Path, seconds: float = 60, **options: Any
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a program with all processes that it starts; yield it once it is ready.

    log: the file that its output is added to. options: of `subprocess.Popen`.
    Raises AssertionError, with the last lines of the log, when it ends before it is ready or is late.
    """
    with log.open("ab") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True, **options)
    try:
        wait_for(is_ready, seconds=seconds, what=f"{Path(command[0]).name} is ready", server=server, log=log)
        yield server
    finally:
        stop_group(server)


def stop_group(server: "subprocess.Popen[bytes]") -> None:
    """Stop a server that leads a process group, and kill the processes that it leaves."""
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        server.wait(timeout=30)
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()
