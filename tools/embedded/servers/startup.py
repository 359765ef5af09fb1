"""Start-up of the servers of a DATA_DIR, unless the environment sets their URLs."""

import os
import secrets
import subprocess
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tools.embedded.data_dir_lock import LauncherKind, LauncherRuntime, read_runtime, write_runtime
from tools.embedded.errors import CannotStart
from tools.embedded.given_settings import is_given, settings_of_service
from tools.embedded.locations import DataDirectory
from tools.embedded.processes.processes import StoppableProcess, has_exited, stop_processes
from tools.embedded.processes.supervisor import SERVER_STAGE, SupervisedProcess, Supervisor
from tools.embedded.servers import postgres, redis
from tools.embedded.servers.cluster import cluster_in, is_served_by
from tools.embedded.servers.server import ManagedServer, ServerKind
from tools.embedded.servers.server_directories import find_server_directory
from tools.embedded.settings import LauncherSettings, service_environment
from tools.embedded.terminal import print_status


def start_servers(
    settings: LauncherSettings, given: Mapping[str, str], supervisor: Supervisor, *, kind: LauncherKind
) -> dict[str, str]:
    """Start the missing servers, which other commands can use from now on; return the environment of the service."""
    data = settings.data
    urls: dict[str, str] = {}
    missing = [name for name in ("DATABASE_URL", "REDIS_URL") if not is_given(given, name)]
    if missing:
        server_directory = find_server_directory(data.path)
        _stop_leftover_postgres(data, server_directory)
        if "DATABASE_URL" in missing:
            urls["DATABASE_URL"] = _start_postgres(data, server_directory, supervisor)
        if "REDIS_URL" in missing:
            start = partial(redis.start, server_directory, password=secrets.token_hex(24))
            urls["REDIS_URL"] = supervise_server(supervisor, redis.REDIS, start, log=data.logs / "redis.log").url
    environment = service_environment(settings, given, urls)
    servers = {s.name: s.process.pid for s in supervisor.processes if s.process}
    write_runtime(data, LauncherRuntime(kind, os.getpid(), settings_of_service(environment), servers))
    return environment


def supervise_server(
    supervisor: Supervisor, kind: ServerKind, start: Callable[..., ManagedServer], *, log: Path
) -> ManagedServer:
    """Start a server; the supervisor restarts it on the same port."""
    first: list[ManagedServer] = []

    def launch() -> "subprocess.Popen[bytes]":
        server = start(log=log, port=first[0].port if first else None)
        first.append(server)
        return server.process

    supervisor.start(SupervisedProcess(launch, kind.stop_sequence, SERVER_STAGE, log))
    return first[0]


def _start_postgres(data: DataDirectory, server_directory: Path, supervisor: Supervisor) -> str:
    marker = data.private / "has-database"
    if marker.exists() and not cluster_in(server_directory).exists():
        raise CannotStart(
            f"The database of {data.path} is missing ({cluster_in(server_directory)})."
            " Restore it, or set another DATA_DIR."
        )
    start = partial(postgres.start, server_directory)
    server = supervise_server(supervisor, postgres.POSTGRES, start, log=data.logs / "postgres.log")
    marker.touch(mode=0o600)
    return server.url


def _stop_leftover_postgres(data: DataDirectory, server_directory: Path) -> None:
    """Stop a PostgreSQL whose launcher and watchdog were both killed. Requires the DATA_DIR lock."""
    runtime = read_runtime(data)
    pid = runtime.servers.get("postgres") if runtime else None
    if pid and is_served_by(cluster_in(server_directory), pid):
        print_status(f"Stopping PostgreSQL (process {pid}), left running by an earlier start …")
        stop_processes([StoppableProcess(pid, postgres.POSTGRES.stop_sequence, True, partial(has_exited, pid))])
    data.runtime.unlink(missing_ok=True)
