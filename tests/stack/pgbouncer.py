"""PgBouncer of Debian 13 with the shipped configuration (deploy/pgbouncer.ini), and HAProxy that finds a primary.

The version of Debian 12 has no prepared statements in transaction mode.
"""

import configparser
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import urlsplit

import psycopg

from tests.stack.patroni import Cluster
from tests.stack.servers import running_server
from tests.stack.stack import REPOSITORY, free_port, wait_for
from tests.standards import tools
from tools.embedded.servers.accounts import account_for
from tools.embedded.servers.server_directories import make_temporary_directory, remove_temporary_directory

POOLER = REPOSITORY / "deploy" / "pgbouncer.ini"
BALANCER = REPOSITORY / "deploy" / "patroni" / "haproxy.cfg"
RELEASE = "trixie"
START_SECONDS = 60


@dataclass(frozen=True)
class PgBouncer:
    """A running PgBouncer.

    url: of any database behind it.
    log: its output.
    """

    url: str
    log: Path

    def run(self, command: LiteralString) -> list[dict[str, Any]]:
        """Run a command of the console; return its rows."""
        with psycopg.connect(urlsplit(self.url)._replace(path="/pgbouncer").geturl(), autocommit=True) as connection:
            # The console knows simple queries only.
            cursor = psycopg.ClientCursor(connection, row_factory=psycopg.rows.dict_row).execute(command)
            return cursor.fetchall() if cursor.description else []


def role_settings() -> list[str]:
    """Return the assignments of the statements in docs/scaling.md."""
    page = (REPOSITORY / "docs" / "scaling.md").read_text()
    return re.findall(r"^ALTER ROLE postrider (SET .+);$", page, re.MULTILINE)


@contextmanager
def running_pgbouncer(server: str, *, pool_size: int) -> Iterator[PgBouncer]:
    """Yield a PgBouncer for all databases of a server. server: its URL, with the account that clients also use."""
    program = tools.program_of_release("usr/sbin/pgbouncer", "pgbouncer", RELEASE)
    upstream, port, directory = urlsplit(server), free_port(), make_temporary_directory()
    shipped = configparser.ConfigParser()
    shipped.read(POOLER)
    shipped["databases"] = {"*": f"host={upstream.hostname} port={upstream.port}"}
    accounts = directory / "userlist.txt"
    accounts.write_text(f'"{upstream.username}" "{upstream.password}"\n')
    changes = {"listen_port": port, "auth_file": accounts, "default_pool_size": pool_size}
    shipped["pgbouncer"].update({name: str(value) for name, value in changes.items()})
    shipped["pgbouncer"]["admin_users"] = str(upstream.username)
    file = directory / "pgbouncer.ini"
    with file.open("w") as stream:
        shipped.write(stream)
    account = account_for(directory / "none")
    for path in (file, accounts):
        account.give_ownership(path)
    # It refuses to run as root.
    command = [*program, *(["--user", account.name] if os.geteuid() == 0 else []), str(file)]
    log_file = directory / "pgbouncer.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    pooler = PgBouncer(
        upstream._replace(netloc=f"{upstream.username}:{upstream.password}@127.0.0.1:{port}").geturl(), log_file
    )
    try:
        wait_for(
            lambda: _answers(pooler.url),
            seconds=START_SECONDS,
            what="PgBouncer answers",
            server=process,
            log=log_file,
        )
        yield pooler
    finally:
        process.kill()
        process.wait()
        remove_temporary_directory(directory)


@contextmanager
def running_balancer(cluster: Cluster, directory: Path) -> Iterator[str]:
    """Yield the URL of the primary of a cluster behind HAProxy."""
    haproxy = tools.program("haproxy", package="haproxy")
    port = free_port()
    text = BALANCER.read_text().replace("127.0.0.1:5000", f"127.0.0.1:{port}").replace(" port 8008", "")
    for server, address in zip(cluster.servers, ("10.0.0.11:5432", "10.0.0.12:5432"), strict=True):
        assert address in text
        text = text.replace(address, f"127.0.0.1:{server.port} port {server.api_port}")
    lines = [line for line in text.splitlines() if line.split()[:1] not in (["user"], ["group"])]
    file = directory / "haproxy.cfg"
    file.write_text("\n".join([*lines, ""]))
    account = urlsplit(cluster.url)
    url = account._replace(netloc=f"{account.username}:{account.password}@127.0.0.1:{port}", query="").geturl()
    command = [haproxy, "-db", "-q", "-f", str(file)]
    # It answers once it has found the primary.
    with running_server(command, is_ready=lambda: _answers(url), log=directory / "haproxy.log"):
        yield url


def _answers(url: str) -> bool:
    with suppress(psycopg.OperationalError), psycopg.connect(url, connect_timeout=2) as connection:
        connection.execute("SELECT 1")
        return True
    return False
