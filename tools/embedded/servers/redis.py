"""Embedded Redis server, used for wake-ups and rate limits; its data is not persisted."""

import secrets
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from tools.embedded.logs import open_log
from tools.embedded.processes.processes import start_in_session
from tools.embedded.servers.accounts import SystemAccount, account_for
from tools.embedded.servers.binaries import find_redis
from tools.embedded.servers.cluster import cluster_in, server_environment
from tools.embedded.servers.server import ManagedServer, ServerKind, start_in_temporary_directory

REDIS = ServerKind(name="Redis", stop_sequence=((signal.SIGTERM, 5), (signal.SIGKILL, 5)), start_seconds=20)

CONFIGURATION = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir {server_directory}
save ""
appendonly no
daemonize no
# Fewer wake-ups of an idle server; it notices SIGTERM only at these.
hz 4
"""


def start(
    server_directory: Path, *, port: int | None = None, password: str | None = None, log: Path | None = None
) -> ManagedServer:
    """Start Redis and wait until it answers.

    server_directory: a directory that the servers' account can enter (see `tools.embedded.servers.server_directories`).
    port, password: a free and a random one by default.
    log: redis.log in the server directory by default.
    """
    account = account_for(cluster_in(server_directory))
    program = find_redis(account=account, server_directory=server_directory)
    log = log or server_directory / "redis.log"
    password = password or secrets.token_hex(24)
    text = CONFIGURATION.format(port="{port}", password=password, server_directory=server_directory)
    return REDIS.start(
        lambda chosen: _launch(program, text.replace("{port}", str(chosen)), account=account, log=log),
        is_ready=lambda _, chosen: _answers(chosen, password),
        url=f"redis://:{password}@127.0.0.1:{{port}}/0",
        port=port,
        log=log,
    )


def start_throw_away() -> ManagedServer:
    """Start Redis in a new temporary directory, which `stop()` removes."""
    return start_in_temporary_directory(start)


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
