"""Server processes started by the launcher or by a test."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tools.embedded.errors import CannotStart
from tools.embedded.logs import read_log_tail
from tools.embedded.processes.processes import StoppableProcess, StopSequence, stop_processes, wait_until
from tools.embedded.servers.ports import choose_ports
from tools.embedded.servers.server_directories import make_temporary_directory, remove_temporary_directory


@dataclass(frozen=True)
class ManagedServer:
    """A running server. `url` includes its password; `temporary_directory` is removed when it stops."""

    url: str
    port: int
    process: subprocess.Popen[bytes]
    stop_sequence: StopSequence
    temporary_directory: Path | None = None

    @property
    def pid(self) -> int:
        """The pid of the server's main process."""
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process is running."""
        return self.process.poll() is None

    def stop(self) -> None:
        """Stop the server and wait for its exit. May be called twice."""
        stop_processes([StoppableProcess.of_child(self.process, self.stop_sequence)])
        if self.temporary_directory:
            remove_temporary_directory(self.temporary_directory)


@dataclass(frozen=True, kw_only=True)
class ServerKind:
    """How a server is started and stopped. name: for error messages."""

    name: str
    stop_sequence: StopSequence
    start_seconds: float

    def start(
        self,
        launch: Callable[[int], subprocess.Popen[bytes]],
        *,
        is_ready: Callable[[subprocess.Popen[bytes], int], bool],
        url: str,
        port: int | None,
        log: Path,
    ) -> ManagedServer:
        """Start the server on the port, by default on a free one, and wait until it is ready.

        launch: starts a process that listens on the given port.
        url: the URL, with {port}.
        """
        for chosen in [port] if port else choose_ports(3):
            server = ManagedServer(url.format(port=chosen), chosen, launch(chosen), self.stop_sequence)
            if self._becomes_ready(server, is_ready):
                return server
            server.stop()
            if "ddress already in use" not in read_log_tail(log, lines=8):
                break
        raise CannotStart(f"{self.name} failed to start. Last lines of {log}:\n{read_log_tail(log)}")

    def _becomes_ready(self, server: ManagedServer, is_ready: Callable[[subprocess.Popen[bytes], int], bool]) -> bool:
        """Wait until the server accepts connections or has exited; return whether it accepts them."""
        answered = wait_until(
            lambda: not server.is_alive or is_ready(server.process, server.port), seconds=self.start_seconds
        )
        return answered and server.is_alive


def start_in_temporary_directory(start: Callable[[Path], ManagedServer]) -> ManagedServer:
    """Start a server in a new directory, which `stop()` removes."""
    server_directory = make_temporary_directory()
    try:
        return replace(start(server_directory), temporary_directory=server_directory)
    except BaseException:
        remove_temporary_directory(server_directory)
        raise
