"""Start-up of the servers of a DATA_DIR, unless the environment sets their URLs."""

import secrets
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from embedded.data_dir_lock import read_runtime
from embedded.errors import CannotStart
from embedded.locations import DataDirectory
from embedded.processes.processes import StoppableProcess, has_exited, stop_processes
from embedded.processes.supervisor import SERVER_STAGE, SupervisedProcess, Supervisor
from embedded.servers import postgres, redis
from embedded.servers.cluster import cluster_in, is_served_by
from embedded.servers.server import ManagedServer
from embedded.servers.server_directories import find_server_directory
from embedded.terminal import print_status


def start_servers(data: DataDirectory, given: Mapping[str, str], supervisor: Supervisor) -> dict[str, str]:
    """Start the missing servers; return DATABASE_URL and REDIS_URL."""
    urls = {name: given[name] for name in ("DATABASE_URL", "REDIS_URL") if given.get(name)}
    if "DATABASE_URL" in urls and "REDIS_URL" in urls:
        return urls
    server_directory = find_server_directory(data.path)
    _stop_leftover_postgres(data, server_directory)
    if "DATABASE_URL" not in urls:
        urls["DATABASE_URL"] = _start_postgres(data, server_directory, supervisor)
    if "REDIS_URL" not in urls:
        urls["REDIS_URL"] = _start_redis(data, server_directory, supervisor)
    return urls


def _start_postgres(data: DataDirectory, server_directory: Path, supervisor: Supervisor) -> str:
    marker = data.private / "has-database"
    if marker.exists() and not cluster_in(server_directory).exists():
        raise CannotStart(
            f"The database of {data.path} is missing ({cluster_in(server_directory)})."
            " Restore it, or set another DATA_DIR."
        )
    server = _supervise(supervisor, data, partial(postgres.start, server_directory), name="postgres")
    marker.touch(mode=0o600)
    return server.url


def _start_redis(data: DataDirectory, server_directory: Path, supervisor: Supervisor) -> str:
    start = partial(redis.start, server_directory, password=secrets.token_hex(24))
    return _supervise(supervisor, data, start, name="redis").url


def _supervise(
    supervisor: Supervisor, data: DataDirectory, start: Callable[..., ManagedServer], *, name: str
) -> ManagedServer:
    """Start a server; the supervisor restarts it on the same port with the same password."""
    log = data.logs / f"{name}.log"
    first: list[ManagedServer] = []

    def launch() -> ManagedServer:
        server = start(log=log, port=first[0].port if first else None)
        first.append(server)
        return server

    stop_sequence = {"postgres": postgres.POSTGRES, "redis": redis.REDIS}[name].stop_sequence
    supervisor.start(SupervisedProcess(name, lambda: launch().process, stop_sequence, SERVER_STAGE, str(log)))
    return first[0]


def _stop_leftover_postgres(data: DataDirectory, server_directory: Path) -> None:
    """Stop a PostgreSQL whose launcher and watchdog were both killed. Requires the DATA_DIR lock."""
    runtime = read_runtime(data)
    pid = runtime.servers.get("postgres") if runtime else None
    if pid and is_served_by(cluster_in(server_directory), pid):
        print_status(f"Stopping PostgreSQL (process {pid}), left running by an earlier start …")
        stop_processes([StoppableProcess(pid, postgres.POSTGRES.stop_sequence, True, partial(has_exited, pid))])
    data.runtime.unlink(missing_ok=True)
