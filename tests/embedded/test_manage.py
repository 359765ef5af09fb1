"""bin/manage: manage.py with the right servers, fit for scripts."""

import json
import signal

from embedded.servers import postgres
from tests.embedded.conftest import StandIn, eventually


def test_manage_starts_servers_for_the_moment(stand_in: StandIn) -> None:
    assert stand_in.finish("manage", "migrate").returncode == 0
    done = stand_in.finish("manage", "count")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert stand_in.is_empty()


def test_manage_passes_input_output_and_exit_code(stand_in: StandIn) -> None:
    done = stand_in.finish("manage", "shout", stdin="hello")
    assert (done.returncode, done.stdout, done.stderr) == (7, "HELLO", "")


def test_manage_joins_the_service_and_its_settings_where_it_was_called(stand_in: StandIn) -> None:
    service = stand_in.start_service(SECRET_KEY="chosen", INBOX_PORT="2525")
    done = stand_in.finish("manage", "shout", stdin="hello")
    assert (done.returncode, done.stdout, done.stderr) == (7, "HELLO", "")
    seen = json.loads(stand_in.finish("manage", "show").stdout)
    assert seen["SECRET_KEY"] == "chosen"
    assert seen["INBOX_PORT"] == "2525"
    assert seen["MODE"] == "embedded"
    assert seen["DATA_DIR"] == str(stand_in.data)
    assert seen["PUBLIC_URL"] == f"http://127.0.0.1:{stand_in.port}"
    assert seen["here"] != str(stand_in.path)
    service.send_signal(signal.SIGINT)


def test_a_second_manage_shares_the_servers_of_the_first(stand_in: StandIn) -> None:
    stand_in.finish("manage", "migrate")
    first = stand_in.start("manage", "shout")
    assert eventually((stand_in.data / "private" / "runtime.json").exists)
    second = stand_in.start("manage", "count_slowly")
    assert second.stdout
    assert second.stdout.readline() == "counting\n"
    # The first is done, and its launcher keeps the servers for the second.
    assert first.stdin
    first.stdin.close()
    assert not eventually(lambda: first.poll() is not None, seconds=0.5)
    assert second.communicate("now", timeout=30)[0] == "1\n"
    assert first.wait(timeout=30) == 7
    assert stand_in.is_empty()


def test_run_waits_for_a_manage_that_holds_the_servers(stand_in: StandIn) -> None:
    manage = stand_in.start("manage", "shout")
    assert eventually((stand_in.data / "private" / "runtime.json").exists)
    run = stand_in.start("run")
    assert run.stderr
    assert run.stderr.readline().startswith("Waiting for another launcher on")
    manage.communicate("a", timeout=30)
    assert eventually(stand_in.answers)
    run.send_signal(signal.SIGINT)


def test_a_database_of_ones_own_is_used_instead(stand_in: StandIn) -> None:
    server = postgres.start_throw_away()
    try:
        assert stand_in.finish("manage", "migrate", DATABASE_URL=server.url).returncode == 0
        assert stand_in.finish("manage", "count", DATABASE_URL=server.url).stdout == "1\n"
        assert not (stand_in.data / "servers" / "postgres").exists()
    finally:
        server.stop()
