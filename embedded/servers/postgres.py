"""Start the embedded PostgreSQL."""

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from embedded.errors import CannotStart
from embedded.logs import open_log
from embedded.processes.processes import Ending, Ladder, end_all, start_in_session
from embedded.processes.waiting import wait_until
from embedded.servers import cluster as clusters
from embedded.servers.accounts import Account, account_for
from embedded.servers.binaries import Postgres, find_postgres
from embedded.servers.homes import make_temporary_home, remove_temporary_home
from embedded.servers.ports import choose_ports
from embedded.servers.server import Server, last_words

# Fast shutdown; then immediate shutdown, from which the next start recovers.
LADDER: Ladder = ((signal.SIGINT, 20), (signal.SIGQUIT, 5), (signal.SIGKILL, 5))
START_SECONDS = 60

# For mail that matters: fsync stays on.
# Web workers keep a connection each, and there are two of them per core.
DURABLE: Mapping[str, str] = {"max_connections": str(100 + 10 * (os.cpu_count() or 1))}
# For tests: a crash of the machine may lose everything.
THROW_AWAY: Mapping[str, str] = {
    "max_connections": "200",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
}
ALWAYS: Mapping[str, str] = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


def start(
    home: Path,
    *,
    settings: Mapping[str, str] = DURABLE,
    port: int | None = None,
    log: Path | None = None,
) -> Server:
    """Start PostgreSQL on the cluster below home, made now if there is none, and wait for it.

    home: a directory that the servers' account can enter (see `embedded.servers.homes`).
    settings: parameters of postgresql.conf.
    port: unset, a free one is chosen. log: unset, home/postgres.log.
    Raises CannotStart when the cluster is broken, in use, or made by another version.
    """
    cluster = clusters.cluster_in(home)
    account = account_for(cluster)
    major = clusters.read_major(cluster)
    binaries = find_postgres(account=account, home=home, major=major)
    if major is None:
        durable = settings.get("fsync") != "off"
        clusters.make_cluster(cluster, binaries=binaries, account=account, durable=durable)
    clusters.refuse_if_live(cluster)
    log = log or home / "postgres.log"
    for chosen in [port] if port else choose_ports(3):
        process = _launch(cluster, binaries, account, {**settings, "port": str(chosen)}, log)
        if _comes_up(cluster, process):
            return _describe(cluster, process, chosen)
        if "Address already in use" not in last_words(log, lines=8):
            break
    raise CannotStart(f"PostgreSQL did not start on {cluster}; {log} ends with:\n{last_words(log)}")


def start_throw_away(*, settings: Mapping[str, str] = THROW_AWAY) -> Server:
    """Start a PostgreSQL in a new temporary directory, which the server's stop() removes."""
    home = make_temporary_home()
    try:
        return replace(start(home, settings=settings), temporary=home)
    except BaseException:
        remove_temporary_home(home)
        raise


def _launch(
    cluster: Path, binaries: Postgres, account: Account, settings: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    command = [binaries.program("postgres"), "-D", str(cluster)]
    for name, value in {**ALWAYS, **settings}.items():
        command += ["-c", f"{name}={value}"]
    with open_log(log) as output:
        return start_in_session(
            command,
            environment=clusters.server_environment(),
            directory=Path("/"),
            output=output,
            account=account,
        )


def _comes_up(cluster: Path, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the server takes connections or is gone."""
    wait_until(
        lambda: process.poll() is not None or clusters.is_ready(cluster, process.pid),
        seconds=START_SECONDS,
    )
    if process.poll() is None and clusters.is_ready(cluster, process.pid):
        return True
    end_all([Ending(process.pid, LADDER, True, lambda: process.poll() is not None)])
    return False


def _describe(cluster: Path, process: subprocess.Popen[bytes], port: int) -> Server:
    password = clusters.read_password(cluster)
    url = f"postgresql://{clusters.ROLE}:{password}@127.0.0.1:{port}/{clusters.DATABASE}"
    return Server("postgres", url, port, process, LADDER)
