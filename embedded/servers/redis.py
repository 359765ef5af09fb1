"""Embedded Redis server, used for wake-ups and rate limits; its data is not persisted."""

import secrets
import signal
import socket
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from embedded.errors import CannotStart
from embedded.logs import open_log
from embedded.processes.processes import StoppableProcess, StopSequence, start_in_session, stop_processes
from embedded.processes.waiting import wait_until
from embedded.servers.accounts import SystemAccount, account_for
from embedded.servers.binaries import find_redis
from embedded.servers.cluster import cluster_in, server_environment
from embedded.servers.ports import choose_ports
from embedded.servers.server import ManagedServer, read_log_tail
from embedded.servers.server_directories import make_temporary_directory, remove_temporary_directory

STOP_SEQUENCE: StopSequence = ((signal.SIGTERM, 5), (signal.SIGKILL, 5))
START_SECONDS = 20

CONFIGURATION = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir {server_directory}
save ""
appendonly no
daemonize no
"""


def start(
    server_directory: Path, *, port: int | None = None, password: str | None = None, log: Path | None = None
) -> ManagedServer:
    """Start Redis and wait until it answers.

    server_directory: a directory that the servers' account can enter (see `embedded.servers.server_directories`).
    port, password: a free and a random one by default. log: redis.log in the server directory by default.
    """
    account = account_for(cluster_in(server_directory))
    program = find_redis(account=account, server_directory=server_directory)
    log = log or server_directory / "redis.log"
    password = password or secrets.token_hex(24)
    for chosen in [port] if port else choose_ports(3):
        text = CONFIGURATION.format(port=chosen, password=password, server_directory=server_directory)
        process = _launch(program, text, account=account, log=log)
        if _wait_until_ready(process, chosen, password):
            url = f"redis://:{password}@127.0.0.1:{chosen}/0"
            return ManagedServer("redis", url, chosen, process, STOP_SEQUENCE)
        if "ddress already in use" not in read_log_tail(log, lines=8):
            break
    raise CannotStart(f"Redis failed to start. Last lines of {log}:\n{read_log_tail(log)}")


def start_throw_away() -> ManagedServer:
    """Start Redis in a new temporary directory, which `stop()` removes."""
    server_directory = make_temporary_directory()
    try:
        return replace(start(server_directory), temporary_directory=server_directory)
    except BaseException:
        remove_temporary_directory(server_directory)
        raise


def _launch(program: str, configuration: str, *, account: SystemAccount, log: Path) -> subprocess.Popen[bytes]:
    """Pass the configuration by a pipe: other users can read a password on the command line."""
    with open_log(log) as output:
        process = start_in_session(
            [program, "-"],
            environment=server_environment(),
            directory=Path("/"),
            output=output,
            account=account,
            stdin=subprocess.PIPE,
        )
    if process.stdin:
        with suppress(BrokenPipeError), process.stdin as pipe:
            pipe.write(configuration.encode())
    return process


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, password: str) -> bool:
    """Wait until the server answers or has exited."""
    answered = wait_until(lambda: process.poll() is not None or _answers(port, password), seconds=START_SECONDS)
    if answered and process.poll() is None:
        return True
    stop_processes([StoppableProcess(process.pid, STOP_SEQUENCE, True, lambda: process.poll() is not None)])
    return False


def _answers(port: int, password: str) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
        connection.sendall(f"AUTH {password}\r\nPING\r\n".encode())
        answer = b""
        while chunk := connection.recv(100):
            answer += chunk
            if answer.endswith(b"+PONG\r\n"):
                return True
            if b"-" in answer:
                return False
    return False
