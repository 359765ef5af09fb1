"""Start the servers of a DATA_DIR: those that the environment does not name."""

import secrets
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from embedded.data_dir_lock import read_runtime
from embedded.errors import CannotStart
from embedded.locations import DataDirectory
from embedded.processes.processes import Ending, end_all, is_gone
from embedded.processes.supervisor import SERVER, Service, Supervisor
from embedded.servers import postgres, redis
from embedded.servers.cluster import cluster_in, is_served_by
from embedded.servers.homes import find_home
from embedded.servers.server import Server
from embedded.terminal import say


def start_servers(data: DataDirectory, given: Mapping[str, str], supervisor: Supervisor) -> dict[str, str]:
    """Return DATABASE_URL and REDIS_URL: the given ones, or those of servers started now."""
    urls = {name: given[name] for name in ("DATABASE_URL", "REDIS_URL") if given.get(name)}
    if "DATABASE_URL" in urls and "REDIS_URL" in urls:
        return urls
    home = find_home(data.path)
    _end_left_over(data, home)
    if "DATABASE_URL" not in urls:
        urls["DATABASE_URL"] = _start_postgres(data, home, supervisor)
    if "REDIS_URL" not in urls:
        urls["REDIS_URL"] = _start_redis(data, home, supervisor)
    return urls


def _start_postgres(data: DataDirectory, home: Path, supervisor: Supervisor) -> str:
    mark = data.private / "has-database"
    if mark.exists() and not cluster_in(home).exists():
        raise CannotStart(
            f"The database of {data.path} is missing ({cluster_in(home)}): bring it back,"
            " or set DATA_DIR to another place."
        )
    server = _keep(supervisor, data, partial(postgres.start, home), name="postgres")
    mark.touch(mode=0o600)
    return server.url


def _start_redis(data: DataDirectory, home: Path, supervisor: Supervisor) -> str:
    start = partial(redis.start, home, password=secrets.token_hex(24))
    return _keep(supervisor, data, start, name="redis").url


def _keep(supervisor: Supervisor, data: DataDirectory, start: Callable[..., Server], *, name: str) -> Server:
    """Start a server; after its death it comes back on the same port with the same password."""
    log = data.logs / f"{name}.log"
    first: list[Server] = []

    def launch() -> Server:
        server = start(log=log, port=first[0].port if first else None)
        first.append(server)
        return server

    ladder = postgres.LADDER if name == "postgres" else redis.LADDER
    supervisor.start(Service(name, lambda: launch().process, ladder, SERVER, str(log)))
    return first[0]


def _end_left_over(data: DataDirectory, home: Path) -> None:
    """End our own servers whose launcher and watchdog were both killed; we hold the lock now."""
    runtime = read_runtime(data)
    pid = runtime.servers.get("postgres") if runtime else None
    if pid and is_served_by(cluster_in(home), pid):
        say(f"Ending a PostgreSQL (process {pid}) that an earlier start left running …")
        end_all([Ending(pid, postgres.LADDER, True, partial(is_gone, pid))])
    data.runtime.unlink(missing_ok=True)
