"""PostgreSQL with a synchronous standby under Patroni and etcd, with the shipped configuration (deploy/patroni)."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import yaml

from tests.stack.stack import REPOSITORY, answers_200, free_port, wait_for
from tests.standards import tools
from tools.embedded.servers.accounts import SystemAccount, account_for
from tools.embedded.servers.server_directories import make_temporary_directory, remove_temporary_directory

CONFIGURATION = REPOSITORY / "deploy" / "patroni" / "config.yml"
ETCD = REPOSITORY / "deploy" / "patroni" / "etcd"
NAMES = ("db1", "db2")
START_SECONDS = 120
# A killed process loses nothing that it wrote: only a machine without power would.
UNSAFE = {"fsync": "off"}
PASSWORD = "service-password"
IN_SYNC = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'"


@dataclass
class DatabaseServer:
    """One of the servers: its PostgreSQL, and the Patroni that controls it."""

    name: str
    directory: Path
    account: SystemAccount
    port: int = field(default_factory=free_port)
    api_port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def data_directory(self) -> Path:
        return self.directory / "data"

    def configure(self, etcd_port: int) -> None:
        """Write the shipped configuration with the addresses and directories of the test."""
        shipped: dict[str, Any] = yaml.safe_load(CONFIGURATION.read_text())
        self.directory.mkdir()
        self.account.give_ownership(self.directory)
        api, address = f"127.0.0.1:{self.api_port}", f"127.0.0.1:{self.port}"
        programs = tools.library("lib/postgresql/*/bin/pg_rewind", package="postgresql").parent
        changes = {"listen": address, "connect_address": address, "bin_dir": str(programs)}
        changes["data_dir"] = str(self.data_directory)
        changes["pg_hba"] = [row.replace("10.0.0.0/24", "127.0.0.1/32") for row in shipped["postgresql"]["pg_hba"]]
        changes["parameters"] = {"unix_socket_directories": ""}
        changes["pgpass"] = str(self.directory / "pgpass")
        shipped["postgresql"] |= changes
        shipped["bootstrap"]["dcs"]["postgresql"]["parameters"] |= UNSAFE
        shipped["name"] = self.name
        shipped["restapi"] |= {"listen": api, "connect_address": api}
        shipped["etcd3"]["hosts"] = [f"127.0.0.1:{etcd_port}"]
        self.file.write_text(yaml.safe_dump(shipped))
        self.account.give_ownership(self.file)

    @property
    def file(self) -> Path:
        return self.directory / "config.yml"

    def start(self) -> None:
        program = tools.program("patroni", package="patroni")
        with (self.directory / "patroni.log").open("ab") as log:
            # Debian's program runs with Debian's Python.
            self.process = subprocess.Popen(
                [program, str(self.file)], cwd="/", stdout=log, stderr=log, start_new_session=True,
                env={"PATH": tools.PATH, "LC_ALL": "C.UTF-8"}, **self.account.popen_options,
            )  # fmt: skip

    def is_primary(self) -> bool:
        return answers_200(f"http://127.0.0.1:{self.api_port}/primary")

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement as the superuser; return its rows."""
        login = yaml.safe_load(CONFIGURATION.read_text())["postgresql"]["authentication"]["superuser"]
        url = f"postgres://{login['username']}:{login['password']}@127.0.0.1:{self.port}/postgres"
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def configure_cluster(self, **settings: Any) -> None:
        """Change the configuration of the cluster through Patroni."""
        login = yaml.safe_load(CONFIGURATION.read_text())["restapi"]["authentication"]
        token = base64.b64encode(f"{login['username']}:{login['password']}".encode()).decode()
        headers = {"Content-Type": "application/json", "Authorization": f"Basic {token}"}
        url = f"http://127.0.0.1:{self.api_port}/config"
        urllib.request.urlopen(
            urllib.request.Request(url, json.dumps(settings).encode(), headers, method="PATCH")
        ).close()

    def lose_power(self) -> None:
        """Kill Patroni and all processes of PostgreSQL, which have its directory as their own."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None
        while pids := list(self._processes_of_postgres()):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _processes_of_postgres(self) -> Iterator[int]:
        for entry in Path("/proc").glob("[0-9]*/cwd"):
            with suppress(OSError):
                if entry.readlink() == self.data_directory:
                    yield int(entry.parent.name)


@dataclass
class Cluster:
    """Two servers. url: of the role postrider at both, with which a client finds the primary."""

    servers: tuple[DatabaseServer, ...]

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        return f"postgres://postrider:{PASSWORD}@{hosts}/postgres?target_session_attrs=read-write"

    def primary(self) -> DatabaseServer:
        return next(server for server in self.servers if server.is_primary())

    def standby(self) -> DatabaseServer:
        return next(server for server in self.servers if not server.is_primary())

    def wait_for_standby(self) -> None:
        """Wait until each commit waits for a standby, which could take over."""
        wait_for(self._has_standby, seconds=START_SECONDS, what="a synchronous standby")

    def _has_standby(self) -> bool:
        with suppress(psycopg.OperationalError, StopIteration):
            return self.run_as_superuser(IN_SYNC) == [(1,)]
        return False

    def run_as_superuser(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement on the primary; return its rows."""
        return self.primary().run(statement)


def etcd_settings(port: int, directory: Path) -> dict[str, str]:
    """Return the shipped environment, for a single etcd with this port for clients."""
    text = re.sub(r",db2=.*$", "", ETCD.read_text(), flags=re.MULTILINE)
    text = text.replace("10.0.0.11:2379", f"127.0.0.1:{port}").replace("10.0.0.11:2380", f"127.0.0.1:{free_port()}")
    text = text.replace("/var/lib/etcd/postrider", str(directory))
    return dict(line.split("=", 1) for line in text.splitlines() if not line.startswith("#"))


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Yield a primary and its synchronous standby, with the role postrider, which may create databases."""
    etcd = tools.program("etcd", package="etcd-server")
    directory = make_temporary_directory()
    account = account_for(directory / "none")
    servers = tuple(DatabaseServer(name, directory / name, account) for name in NAMES)
    cluster = Cluster(servers)
    client = free_port()
    with (directory / "etcd.log").open("wb") as log:
        store = subprocess.Popen(
            [etcd, "--log-level=error"], env=etcd_settings(client, directory / "etcd"), stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    try:
        for server in servers:
            server.configure(client)
            server.start()
            # The first one is the primary.
            first = servers[0]
            wait_for(first.is_primary, seconds=START_SECONDS, what="PostgreSQL has started", server=first.process)
        cluster.run_as_superuser(f"CREATE ROLE postrider LOGIN CREATEDB PASSWORD '{PASSWORD}'")
        cluster.wait_for_standby()
        yield cluster
    finally:
        for server in servers:
            server.lose_power()
        store.kill()
        store.wait()
        if log_directory := os.environ.get("POSTRIDER_TEST_LOGS"):
            for server in servers:
                shutil.copy(server.directory / "patroni.log", Path(log_directory) / f"{server.name}.log")
        remove_temporary_directory(directory)
