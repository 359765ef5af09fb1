"""Embedded PostgreSQL server."""

import os
import signal
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tools.embedded.logs import open_log
from tools.embedded.processes.processes import start_in_session
from tools.embedded.servers import cluster as clusters
from tools.embedded.servers.accounts import SystemAccount, account_for
from tools.embedded.servers.binaries import PostgresBinaries, find_postgres
from tools.embedded.servers.server import ManagedServer, ServerKind, start_in_temporary_directory

POSTGRES = ServerKind(
    name="PostgreSQL",
    # Fast shutdown; then immediate shutdown, from which the next start recovers.
    stop_sequence=((signal.SIGINT, 20), (signal.SIGQUIT, 5), (signal.SIGKILL, 5)),
    start_seconds=60,
)

# fsync stays on, so that accepted email survives a crash.
# Each thread of a web process uses one connection, and there are four threads per core.
DURABLE: Mapping[str, str] = {"max_connections": str(100 + 10 * (os.cpu_count() or 1))}
# For tests: a crash of the machine may lose all data.
THROW_AWAY: Mapping[str, str] = {
    "max_connections": "200",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    # It would analyze small tables at any time, and so change the plans of statements that a test explains.
    "autovacuum": "off",
}
ALWAYS: Mapping[str, str] = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


def start(
    server_directory: Path,
    *,
    settings: Mapping[str, str] = DURABLE,
    port: int | None = None,
    log: Path | None = None,
) -> ManagedServer:
    """Start PostgreSQL on the cluster in the server directory, created if missing, and wait until it is ready.

    server_directory: a directory that the servers' account can enter (see `tools.embedded.servers.server_directories`).
    settings: parameters of postgresql.conf.
    port: a free one by default.
    log: postgres.log in the server directory by default.
    Raises CannotStart when the cluster is incomplete, in use, or created by another version.
    """
    cluster = clusters.cluster_in(server_directory)
    account = account_for(cluster)
    major = clusters.read_major(cluster)
    binaries = find_postgres(account=account, server_directory=server_directory, major=major)
    if major is None:
        durable = settings.get("fsync") != "off"
        clusters.create_cluster(cluster, binaries=binaries, account=account, durable=durable)
    clusters.refuse_running_cluster(cluster)
    log = log or server_directory / "postgres.log"
    password = clusters.read_password(cluster)
    return POSTGRES.start(
        lambda chosen: _launch(cluster, binaries, account, {**settings, "port": str(chosen)}, log),
        is_ready=lambda process, _: clusters.is_ready(cluster, process.pid),
        url=f"postgresql://{clusters.ROLE}:{password}@127.0.0.1:{{port}}/{clusters.DATABASE}",
        port=port,
        log=log,
    )


def start_throw_away(*, settings: Mapping[str, str] = THROW_AWAY) -> ManagedServer:
    """Start PostgreSQL in a new temporary directory, which `stop()` removes."""
    return start_in_temporary_directory(partial(start, settings=settings))


def _launch(
    cluster: Path, binaries: PostgresBinaries, account: SystemAccount, settings: Mapping[str, str], log: Path
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
