"""Start the embedded Redis. It only rings bells: nothing in it outlives it."""

import secrets
import signal
import socket
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from embedded.errors import CannotStart
from embedded.logs import open_log
from embedded.processes.processes import Ending, Ladder, end_all, start_in_session
from embedded.processes.waiting import wait_until
from embedded.servers.accounts import Account, account_for
from embedded.servers.binaries import find_redis
from embedded.servers.cluster import cluster_in, server_environment
from embedded.servers.homes import make_temporary_home, remove_temporary_home
from embedded.servers.ports import choose_ports
from embedded.servers.server import Server, last_words

LADDER: Ladder = ((signal.SIGTERM, 5), (signal.SIGKILL, 5))
START_SECONDS = 20

CONFIGURATION = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir {home}
save ""
appendonly no
daemonize no
"""


def start(home: Path, *, port: int | None = None, password: str | None = None, log: Path | None = None) -> Server:
    """Start Redis and wait until it answers.

    home: a directory that the servers' account can enter (see `embedded.servers.homes`).
    port, password: unset, a free one and a new one. log: unset, home/redis.log.
    """
    account = account_for(cluster_in(home))
    program = find_redis(account=account, home=home)
    log = log or home / "redis.log"
    password = password or secrets.token_hex(24)
    for chosen in [port] if port else choose_ports(3):
        text = CONFIGURATION.format(port=chosen, password=password, home=home)
        process = _launch(program, text, account=account, log=log)
        if _comes_up(process, chosen, password):
            url = f"redis://:{password}@127.0.0.1:{chosen}/0"
            return Server("redis", url, chosen, process, LADDER)
        if "ddress already in use" not in last_words(log, lines=8):
            break
    raise CannotStart(f"Redis did not start; {log} ends with:\n{last_words(log)}")


def start_throw_away() -> Server:
    """Start a Redis in a new temporary directory, which the server's stop() removes."""
    home = make_temporary_home()
    try:
        return replace(start(home), temporary=home)
    except BaseException:
        remove_temporary_home(home)
        raise


def _launch(program: str, configuration: str, *, account: Account, log: Path) -> subprocess.Popen[bytes]:
    """Hand over the configuration by a pipe: on the command line, everybody reads the password."""
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


def _comes_up(process: subprocess.Popen[bytes], port: int, password: str) -> bool:
    """Wait until the server answers or is gone."""
    answered = wait_until(lambda: process.poll() is not None or _answers(port, password), seconds=START_SECONDS)
    if answered and process.poll() is None:
        return True
    end_all([Ending(process.pid, LADDER, True, lambda: process.poll() is not None)])
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
