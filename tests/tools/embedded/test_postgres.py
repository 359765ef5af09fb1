"""The embedded PostgreSQL: access control, and safe handling of existing files."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.tools.embedded.conftest import wait_until
from tools.embedded.errors import CannotStart
from tools.embedded.servers import postgres
from tools.embedded.servers.accounts import account_for
from tools.embedded.servers.cluster import cluster_in
from tools.embedded.servers.server import ManagedServer


@pytest.fixture(scope="module")
def server() -> Iterator[ManagedServer]:
    """A server shared by several tests."""
    started = postgres.start_throw_away()
    yield started
    started.stop()


def query(url: str, sql: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(sql).fetchone()
    assert row
    return row[0]


def test_the_database_is_utf8_and_orders_by_code_point(server: ManagedServer) -> None:
    assert query(server.url, "SHOW server_encoding") == "UTF8"
    assert query(server.url, "SELECT 'Z' < 'a'") is True
    assert query(server.url, "SELECT upper('ä')") == "Ä"


def test_a_login_without_the_password_is_refused(server: ManagedServer) -> None:
    for login in ("postrider:", "postrider:wrong", "postgres:any"):
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(f"postgresql://{login}@127.0.0.1:{server.port}/postrider")


def test_the_role_may_create_databases_and_is_no_superuser(server: ManagedServer) -> None:
    sql = "SELECT (rolcreatedb, rolsuper)::text FROM pg_roles WHERE rolname = current_user"
    assert query(server.url, sql) == "(t,f)"


def test_a_throw_away_server_removes_its_files() -> None:
    server = postgres.start_throw_away()
    assert server.temporary_directory
    assert query(server.url, "SELECT 1") == 1
    server.stop()
    assert not server.temporary_directory.exists()


def test_a_running_cluster_is_refused(server: ManagedServer) -> None:
    assert server.temporary_directory
    with pytest.raises(CannotStart, match=f"process {server.pid}.* is already running on"):
        postgres.start(server.temporary_directory)
    assert query(server.url, "SELECT 1") == 1


def test_data_survives_a_stop_a_crash_and_a_stale_pid_file(open_directory: Path) -> None:
    first = postgres.start(open_directory)
    assert query(first.url, "SHOW fsync") == "on"
    with psycopg.connect(first.url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS n")
    first.stop()
    first.stop()
    second = postgres.start(open_directory)
    os.kill(second.pid, signal.SIGKILL)
    assert wait_until(lambda: not second.is_alive)
    # After a crash of the machine, the pid may belong to another process of the user.
    pid_file = cluster_in(open_directory) / "postmaster.pid"
    pid_file.write_text(pid_file.read_text().replace(str(second.pid), str(os.getpid()), 1))
    third = postgres.start(open_directory)
    assert query(third.url, "SELECT n FROM kept") == 42
    third.stop()


def make_cluster_files(open_directory: Path, *, version: str = "18", without: str = "") -> Path:
    """Write the files that the launcher checks, owned by the servers' account."""
    account = account_for(cluster_in(open_directory))
    cluster = cluster_in(open_directory)
    (cluster / "global").mkdir(parents=True, exist_ok=True)
    for name in ("PG_VERSION", "global/pg_control", "postrider.password"):
        (cluster / name).write_text(f"{version}\n")
    if without:
        (cluster / without).unlink()
    account.give_ownership(cluster)
    return cluster


def test_an_incomplete_cluster_is_not_changed(open_directory: Path) -> None:
    for name in ("PG_VERSION", "global/pg_control", "postrider.password"):
        cluster = make_cluster_files(open_directory, without=name)
        before = sorted(cluster.rglob("*"))
        with pytest.raises(CannotStart, match=f"is not a complete database .missing {name}"):
            postgres.start(open_directory)
        assert sorted(cluster.rglob("*")) == before


def test_a_cluster_of_another_version_is_explained(open_directory: Path) -> None:
    make_cluster_files(open_directory, version="9")
    with pytest.raises(CannotStart, match="was created by PostgreSQL 9"):
        postgres.start(open_directory)


def test_an_unfinished_cluster_is_created_again(open_directory: Path) -> None:
    unfinished = open_directory / "postgres.unfinished-1"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")
    server = postgres.start(open_directory, settings=postgres.THROW_AWAY)
    assert not unfinished.exists()
    server.stop()
