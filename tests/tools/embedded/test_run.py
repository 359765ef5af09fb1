"""bin/run: start, messages, stored data and shutdown."""

import json
import os
import shlex
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from tests.tools.embedded.conftest import FakeProject, build_fake_project, processes_in, wait_until
from tools.embedded.demo import DemoAccount


def stop(process: subprocess.Popen[str], number: signal.Signals = signal.SIGINT) -> str:
    """Send the signal and return the standard error."""
    process.send_signal(number)
    return process.communicate(timeout=120)[1]


def kill_with_watchdog(fake_project: FakeProject, process: subprocess.Popen[str]) -> None:
    """Kill the launcher and its watchdog, so that nothing stops the programs in order."""
    watchdog = next(line for line in processes_in(fake_project.path) if "tools.embedded.processes.watchdog" in line)
    os.kill(int(watchdog.split()[0]), signal.SIGKILL)
    stop(process, signal.SIGKILL)


def service_pids(fake_project: FakeProject) -> list[int]:
    """Return the process that restarts the web server and the worker, if there is one."""
    return [int(line.split()[0]) for line in processes_in(fake_project.path) if "postrider: supervisor" in line]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_run_creates_a_demo_account_that_survives_a_restart_with_the_data(fake_project: FakeProject) -> None:
    first = fake_project.start_service()
    demo_file = fake_project.data / "demo.json"
    demo = json.loads(demo_file.read_text())
    base = f"http://127.0.0.1:{fake_project.port}"
    assert demo == {
        "baseUrl": base,
        "apiKey": "pr_fake",
        "from": "Demo <hello@demo.example>",
        "dashboardEmail": "demo@demo.example",
        "dashboardPassword": "it's secret",
        "staffEmail": "staff@demo.example",
        "staffPassword": "s",
        "inboxUrl": f"{base}/dashboard/inbox/",
    }
    assert mode_of(demo_file) == 0o600
    assert mode_of(fake_project.data / "private") == 0o700
    assert mode_of(fake_project.data / "private" / "secrets.json") == 0o600
    assert fake_project.is_ready()
    settings = fake_project.run("manage", "show").stdout
    stop(first)
    assert first.returncode == 0
    assert fake_project.has_stopped()

    logins = (fake_project.data / "private" / "logins.json").read_text()
    second = fake_project.start_service()
    assert fake_project.run("manage", "count").stdout == "2\n"
    assert json.loads(demo_file.read_text()) == demo
    assert (fake_project.data / "private" / "logins.json").read_text() == logins
    kept_settings = ("SECRET_KEY", "APP_KEYS", "DATA_DIR", "PUBLIC_URL")
    again = json.loads(fake_project.run("manage", "show").stdout)
    assert {n: again[n] for n in kept_settings} == {n: json.loads(settings)[n] for n in kept_settings}
    stop(second, signal.SIGTERM)
    assert second.returncode == 0
    assert fake_project.has_stopped()
    assert not (fake_project.data / "private" / "runtime.json").exists()


def test_the_curl_command_is_valid_shell() -> None:
    logins = {"apiKey": "pr_1", "from": "Ann O'Hara <ann@demo.example>"}
    words = shlex.split(DemoAccount("http://127.0.0.1:8000", logins).curl())
    assert words[:3] == ["curl", "-sS", "http://127.0.0.1:8000/v1/emails/send"]
    assert words[3:8] == ["-H", "Authorization: Bearer pr_1", "-H", "Content-Type: application/json", "-d"]
    assert json.loads(words[8])["from"] == "Ann O'Hara <ann@demo.example>"


def test_a_second_signal_kills_a_slow_process(fake_project: FakeProject) -> None:
    process = fake_project.start_service(STUBBORN="yes")
    process.send_signal(signal.SIGINT)
    assert process.stderr
    assert "Stopping … (press Ctrl-C again to force)\n" in iter(process.stderr.readline, "")
    stop(process)
    assert process.returncode == 0
    assert fake_project.has_stopped()


def test_killing_the_launcher_stops_everything_and_keeps_the_data(fake_project: FakeProject) -> None:
    process = fake_project.start_service()
    stop(process, signal.SIGKILL)
    # Immediately: the new launcher must wait for the watchdog of the old one.
    second = fake_project.start_service()
    assert fake_project.run("manage", "count").stdout == "2\n"
    stop(second, signal.SIGKILL)
    assert wait_until(fake_project.has_stopped)


def test_killing_launcher_and_watchdog_stops_their_children(fake_project: FakeProject) -> None:
    process = fake_project.start_service()
    kill_with_watchdog(fake_project, process)
    second = fake_project.start_service()
    assert fake_project.run("manage", "count").stdout == "2\n"
    stop(second)
    # Only grandchildren may be left.
    assert all(line.endswith("sleep 1000 ") for line in processes_in(fake_project.path))


def test_a_start_waits_for_the_last_requests_of_a_killed_launcher(fake_project: FakeProject) -> None:
    process, answered = fake_project.start_service(), fake_project.path / "answered"
    with socket.create_connection(("127.0.0.1", fake_project.port)) as caller:
        caller.sendall(f"GET /?after={answered} HTTP/1.0\r\n\r\n".encode())
        assert wait_until(answered.with_suffix(".waiting").exists)
        kill_with_watchdog(fake_project, process)
        second = fake_project.start("run")
        assert second.stderr
        assert any(line.startswith(f"Waiting for port {fake_project.port}: ") for line in second.stderr)
        answered.touch()
        assert caller.recv(100).startswith(b"HTTP/1.0 200 OK")
    assert wait_until(fake_project.is_ready)
    stop(second)


def test_a_killed_process_is_restarted(fake_project: FakeProject) -> None:
    process = fake_project.start_service()
    servers = fake_project.runtime()["servers"]
    assert isinstance(servers, dict)
    killed = service_pids(fake_project)
    for pid in (*killed, *servers.values()):
        os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: fake_project.run("manage", "count").stdout == "1\n")
    assert wait_until(lambda: service_pids(fake_project) not in ([], killed))
    assert wait_until(fake_project.is_ready)
    errors = stop(process)
    assert "service exited with code -9; restarting in 1 s" in errors
    assert "postgres exited with code -9" in errors
    assert "redis exited with code -9" in errors


def test_a_busy_port_is_explained_before_anything_starts(fake_project: FakeProject) -> None:
    with socket.create_server(("127.0.0.1", fake_project.port)):
        done = fake_project.run("run")
    assert done.returncode == 1
    assert done.stderr.startswith(f"Port {fake_project.port} is already in use.")
    assert done.stderr.count("\n") == 1
    assert not (fake_project.data / "servers").exists()


def test_arguments_are_checked_before_anything_starts(fake_project: FakeProject) -> None:
    for option in ("--help", "-h"):
        done = fake_project.run("run", option)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("Usage: [NAME=value …] bin/run")
        assert not fake_project.data.exists()
    done = fake_project.run("run", "--port=1")
    assert done.returncode == 1
    assert done.stderr == "bin/run takes no arguments. Set environment variables instead: see bin/run --help.\n"


def test_secrets_and_urls_from_files_replace_the_generated_ones(fake_project: FakeProject) -> None:
    """Also for commands that join: SECRET_KEY and SECRET_KEY_FILE together are an error of the settings."""
    for name in ("SECRET_KEY", "APP_KEYS"):
        (fake_project.path / name).write_text("of a file\n")
    # A relative path is relative to the working directory of the caller.
    files = {f"{name}_FILE": os.path.relpath(fake_project.path / name) for name in ("SECRET_KEY", "APP_KEYS")}
    url = fake_project.path / "redis"
    url.write_text("redis://elsewhere.example/0")
    process = fake_project.start_service(**files, REDIS_URL_FILE=str(url))
    shown = json.loads(fake_project.run("manage", "show_secrets").stdout)
    assert shown == {f"{name}_FILE": str(fake_project.path / name) for name in ("SECRET_KEY", "APP_KEYS")}
    given = json.loads(fake_project.run("manage", "show_secrets", SECRET_KEY="of the caller").stdout)
    assert given == {"SECRET_KEY": "of the caller", "APP_KEYS_FILE": str(fake_project.path / "APP_KEYS")}
    servers = fake_project.runtime()["servers"]
    assert isinstance(servers, dict)
    assert "redis" not in servers
    shown = json.loads(fake_project.run("manage", "show_urls").stdout)
    assert shown.keys() == {"DATABASE_URL", "REDIS_URL_FILE"}
    stop(process)


def test_a_second_launcher_takes_other_smtp_ports(fake_project: FakeProject, tmp_path: Path) -> None:
    """The first one has chosen its ports, and may not listen yet."""
    other = build_fake_project(tmp_path / "other")
    try:
        services = [fake_project.start_service(), other.start_service()]
        chosen = [
            [one.runtime()["environment"][name] for name in ("INBOUND_PORT", "SUBMISSION_PORTS")]  # type: ignore[index]
            for one in (fake_project, other)
        ]
        assert len({*chosen[0], *chosen[1]}) == 4
        for service in services:
            stop(service)
            assert service.returncode == 0
        # A launcher that has ended gives its ports back.
        fake_project.start_service()
        again = fake_project.runtime()["environment"]
        assert again["INBOUND_PORT"] == chosen[0][0]  # type: ignore[index]
    finally:
        other.remove()


def test_migrations_show_their_progress_and_their_errors(fake_project: FakeProject) -> None:
    assert "Migrations: 100 % (1 of 1)\n" in stop(fake_project.start_service())
    done = fake_project.run("run", BROKEN_MIGRATION="1")
    assert done.returncode == 1
    assert done.stderr.endswith("The table exists.\nDatabase migrations failed.\n")


def test_an_invalid_port_is_explained(fake_project: FakeProject) -> None:
    for port in ("http", "0", "65536", "-1"):
        done = fake_project.run("run", PORT=port)
        assert done.returncode == 1
        assert done.stderr == f"PORT={port} is invalid. Use a number from 1 to 65535.\n"


def test_a_second_launcher_is_refused_and_a_closed_terminal_stops_the_first(fake_project: FakeProject) -> None:
    process = fake_project.start_service()
    done = fake_project.run("run")
    assert done.returncode == 1
    assert done.stderr.startswith(f"Postrider is already running on {fake_project.data} at")
    assert done.stderr.count("\n") == 1
    assert fake_project.is_ready()
    stop(process, signal.SIGHUP)
    assert process.returncode == 0
    assert fake_project.has_stopped()


def test_a_program_that_cannot_start_is_shown_with_its_log(fake_project: FakeProject) -> None:
    (fake_project.path / "config" / "wsgi.py").write_text("raise SystemExit('a setting is invalid')")
    done = fake_project.run("run")
    assert done.returncode == 1
    assert "service failed to start" in done.stderr
    assert "a setting is invalid" in done.stderr
    assert fake_project.has_stopped()


@pytest.mark.skipif(os.geteuid() != 0, reason="only servers started by root run as another user")
def test_a_directory_that_only_root_can_enter_is_supported(open_directory: Path) -> None:
    closed = open_directory / "closed"
    closed.mkdir(mode=0o700)
    fake_project = build_fake_project(closed / "postrider")
    try:
        stop(fake_project.start_service())
        (server_directory,) = fake_project.server_directories
        assert (server_directory / "postgres" / "PG_VERSION").exists()
        assert (fake_project.data / "servers-are-in").read_text() == f"{server_directory}\n"
        stop(fake_project.start_service())
        assert fake_project.run("manage", "count").stdout == "2\n"
        assert fake_project.server_directories == [server_directory]
    finally:
        fake_project.remove()
