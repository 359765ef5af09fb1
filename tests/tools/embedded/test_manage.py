"""bin/manage: manage.py with the servers of the DATA_DIR, usable in scripts."""

import json
import signal

from tests.tools.embedded.conftest import FakeProject, wait_until
from tools.embedded.servers import postgres


def test_manage_starts_servers_for_one_command(fake_project: FakeProject) -> None:
    assert fake_project.run("manage", "migrate").returncode == 0
    done = fake_project.run("manage", "count")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert fake_project.has_stopped()


def test_manage_passes_input_output_and_exit_code(fake_project: FakeProject) -> None:
    done = fake_project.run("manage", "shout", stdin="hello")
    assert (done.returncode, done.stdout, done.stderr) == (7, "HELLO", "")


def test_manage_joins_the_service_with_its_settings_and_the_callers_directory(fake_project: FakeProject) -> None:
    service = fake_project.start_service(SECRET_KEY="chosen", INBOX_PORT="2525")
    done = fake_project.run("manage", "shout", stdin="hello")
    assert (done.returncode, done.stdout, done.stderr) == (7, "HELLO", "")
    shown = json.loads(fake_project.run("manage", "show").stdout)
    assert shown["SECRET_KEY"] == "chosen"
    assert shown["INBOX_PORT"] == "2525"
    assert shown["MODE"] == "embedded"
    assert shown["DATA_DIR"] == str(fake_project.data)
    assert shown["PUBLIC_URL"] == f"http://127.0.0.1:{fake_project.port}"
    assert shown["here"] != str(fake_project.path)
    service.send_signal(signal.SIGINT)


def test_a_second_manage_shares_the_servers_of_the_first(fake_project: FakeProject) -> None:
    fake_project.run("manage", "migrate")
    first = fake_project.start("manage", "shout")
    assert wait_until((fake_project.data / "private" / "runtime.json").exists)
    second = fake_project.start("manage", "count_slowly")
    assert second.stdout
    assert second.stdout.readline() == "counting\n"
    # The first command is done; its launcher keeps the servers for the second.
    assert first.stdin
    first.stdin.close()
    assert not wait_until(lambda: first.poll() is not None, seconds=0.5)
    assert second.communicate("now", timeout=60)[0] == "1\n"
    assert first.wait(timeout=60) == 7
    assert fake_project.has_stopped()


def test_run_waits_for_a_manage_that_uses_the_servers(fake_project: FakeProject) -> None:
    manage = fake_project.start("manage", "shout")
    assert wait_until((fake_project.data / "private" / "runtime.json").exists)
    run = fake_project.start("run")
    assert run.stderr
    assert run.stderr.readline().startswith("Waiting for another launcher on")
    manage.communicate("a", timeout=60)
    assert wait_until(fake_project.is_ready)
    run.send_signal(signal.SIGINT)


def test_database_url_replaces_the_embedded_database(fake_project: FakeProject) -> None:
    server = postgres.start_throw_away()
    try:
        assert fake_project.run("manage", "migrate", DATABASE_URL=server.url).returncode == 0
        assert fake_project.run("manage", "count", DATABASE_URL=server.url).stdout == "1\n"
        assert not (fake_project.data / "servers" / "postgres").exists()
    finally:
        server.stop()
