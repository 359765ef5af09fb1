"""The embedded PostgreSQL: closed to strangers, and never careless with what it finds."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from embedded.errors import CannotStart
from embedded.servers import postgres
from embedded.servers.accounts import account_for
from embedded.servers.cluster import cluster_in
from embedded.servers.server import Server
from tests.embedded.conftest import eventually


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that several tests look at."""
    started = postgres.start_throw_away()
    yield started
    started.stop()


def ask(url: str, question: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(question).fetchone()
    assert row
    return row[0]


def test_the_database_is_utf8_and_orders_by_code_point(server: Server) -> None:
    assert ask(server.url, "SHOW server_encoding") == "UTF8"
    assert ask(server.url, "SELECT 'Z' < 'a'") is True
    assert ask(server.url, "SELECT upper('ä')") == "Ä"


@pytest.mark.parametrize(("user", "password"), [("postrider", ""), ("postrider", "wrong"), ("postgres", "any")])
def test_nobody_gets_in_without_the_password(server: Server, user: str, password: str) -> None:
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(f"postgresql://{user}:{password}@127.0.0.1:{server.port}/postrider")


def test_the_role_may_create_databases_and_is_no_superuser(server: Server) -> None:
    question = "SELECT (rolcreatedb, rolsuper)::text FROM pg_roles WHERE rolname = current_user"
    assert ask(server.url, question) == "(t,f)"


def test_a_throw_away_server_leaves_nothing() -> None:
    server = postgres.start_throw_away()
    assert server.temporary
    assert ask(server.url, "SELECT 1") == 1
    server.stop()
    assert not server.temporary.exists()


def test_a_live_cluster_is_refused(server: Server) -> None:
    assert server.temporary
    with pytest.raises(CannotStart, match=f"process {server.pid}.* already runs on"):
        postgres.start(server.temporary)
    assert ask(server.url, "SELECT 1") == 1


def test_data_outlives_a_stop_a_crash_and_a_stale_mark(place: Path) -> None:
    first = postgres.start(place)
    assert ask(first.url, "SHOW fsync") == "on"
    with psycopg.connect(first.url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS n")
    first.stop()
    first.stop()
    second = postgres.start(place)
    os.kill(second.pid, signal.SIGKILL)
    assert eventually(lambda: not second.is_alive)
    # After a crash of the machine, the number in the mark may be another process of the user.
    mark = cluster_in(place) / "postmaster.pid"
    mark.write_text(mark.read_text().replace(str(second.pid), str(os.getpid()), 1))
    third = postgres.start(place)
    assert ask(third.url, "SELECT n FROM kept") == 42
    third.stop()


def make_cluster_files(place: Path, *, version: str = "18", without: str = "") -> Path:
    """Write what the launcher looks at, owned as the servers' files are."""
    account = account_for(cluster_in(place))
    cluster = cluster_in(place)
    (cluster / "global").mkdir(parents=True)
    for name in ("PG_VERSION", "global/pg_control", "postrider.password"):
        (cluster / name).write_text(f"{version}\n")
    if without:
        (cluster / without).unlink()
    account.take(cluster)
    return cluster


@pytest.mark.parametrize("name", ["PG_VERSION", "global/pg_control", "postrider.password"])
def test_a_broken_cluster_is_left_as_it_is(place: Path, name: str) -> None:
    cluster = make_cluster_files(place, without=name)
    before = sorted(cluster.rglob("*"))
    with pytest.raises(CannotStart, match=f"is not a whole database .it lacks {name}"):
        postgres.start(place)
    assert sorted(cluster.rglob("*")) == before


def test_a_cluster_of_another_version_is_one_sentence(place: Path) -> None:
    make_cluster_files(place, version="9")
    with pytest.raises(CannotStart, match="was made by PostgreSQL 9"):
        postgres.start(place)


def test_a_half_made_cluster_is_made_anew(place: Path) -> None:
    half_made = place / "postgres.unfinished-1"
    half_made.mkdir()
    (half_made / "PG_VERSION").write_text("18\n")
    server = postgres.start(place, settings=postgres.THROW_AWAY)
    assert not half_made.exists()
    server.stop()
