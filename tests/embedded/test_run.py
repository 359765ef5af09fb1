"""bin/run: what it starts, says and keeps, and what it leaves behind."""

import json
import os
import shlex
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest

from embedded.demo import Demo
from tests.embedded.conftest import StandIn, build_stand_in, eventually, processes_in


def stop(process: subprocess.Popen[str], number: signal.Signals = signal.SIGINT) -> str:
    """Send the signal and return what was said on standard error."""
    process.send_signal(number)
    return process.communicate(timeout=30)[1]


def kill_with_watchdog(stand_in: StandIn, process: subprocess.Popen[str]) -> None:
    """Leave nobody who would end the launcher's programs in order."""
    watchdog = next(line for line in processes_in(stand_in.path) if "embedded.processes.watchdog" in line)
    os.kill(int(watchdog.split()[0]), signal.SIGKILL)
    stop(process, signal.SIGKILL)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_run_writes_the_demo_and_a_second_start_keeps_it_with_the_data(stand_in: StandIn) -> None:
    first = stand_in.start_service()
    demo_file = stand_in.data / "demo.json"
    demo = json.loads(demo_file.read_text())
    base = f"http://127.0.0.1:{stand_in.port}"
    assert demo == {
        "baseUrl": base,
        "apiKey": "pr_stand_in",
        "from": "Demo <hello@demo.example>",
        "dashboardEmail": "demo@demo.example",
        "dashboardPassword": "it's secret",
        "inboxUrl": f"{base}/dashboard/inbox/",
    }
    assert mode_of(demo_file) == 0o600
    assert mode_of(stand_in.data / "private") == 0o700
    assert mode_of(stand_in.data / "private" / "secrets.json") == 0o600
    assert stand_in.answers()
    seen = stand_in.finish("manage", "show").stdout
    stop(first)
    assert first.returncode == 0
    assert stand_in.is_empty()

    logins = (stand_in.data / "private" / "logins.json").read_text()
    second = stand_in.start_service()
    assert stand_in.finish("manage", "count").stdout == "2\n"
    assert json.loads(demo_file.read_text()) == demo
    assert (stand_in.data / "private" / "logins.json").read_text() == logins
    kept = ("SECRET_KEY", "APP_KEYS", "DATA_DIR", "PUBLIC_URL")
    again = json.loads(stand_in.finish("manage", "show").stdout)
    assert {n: again[n] for n in kept} == {n: json.loads(seen)[n] for n in kept}
    stop(second, signal.SIGTERM)
    assert second.returncode == 0
    assert stand_in.is_empty()
    assert not (stand_in.data / "private" / "runtime.json").exists()


def test_the_curl_is_one_that_a_shell_understands() -> None:
    logins = {"apiKey": "pr_1", "from": "Ann O'Hara <ann@demo.example>"}
    words = shlex.split(Demo("http://127.0.0.1:8000", logins).curl())
    assert words[:3] == ["curl", "-sS", "http://127.0.0.1:8000/v1/emails/send"]
    assert words[3:8] == ["-H", "Authorization: Bearer pr_1", "-H", "Content-Type: application/json", "-d"]
    assert json.loads(words[8])["from"] == "Ann O'Hara <ann@demo.example>"


def test_a_closed_terminal_ends_everything(stand_in: StandIn) -> None:
    process = stand_in.start_service()
    stop(process, signal.SIGHUP)
    assert process.returncode == 0
    assert stand_in.is_empty()


def test_a_second_signal_hurries_whoever_takes_long(stand_in: StandIn) -> None:
    process = stand_in.start_service(STUBBORN="yes")
    process.send_signal(signal.SIGINT)
    assert process.stderr
    assert "Stopping … (once more to hurry)\n" in iter(process.stderr.readline, "")
    stop(process)
    assert process.returncode == 0
    assert stand_in.is_empty()


def test_killing_the_launcher_ends_everything_and_loses_nothing(stand_in: StandIn) -> None:
    process = stand_in.start_service()
    stop(process, signal.SIGKILL)
    # At once: the new launcher must wait for the watchdog of the old one.
    second = stand_in.start_service()
    assert stand_in.finish("manage", "count").stdout == "2\n"
    stop(second, signal.SIGKILL)
    assert eventually(stand_in.is_empty)


def test_killing_launcher_and_watchdog_ends_their_children(stand_in: StandIn) -> None:
    process = stand_in.start_service()
    kill_with_watchdog(stand_in, process)
    second = stand_in.start_service()
    assert stand_in.finish("manage", "count").stdout == "2\n"
    stop(second)
    # Of grandchildren nobody knew any more.
    assert all(line.endswith("sleep 1000 ") for line in processes_in(stand_in.path))


def test_a_start_waits_for_the_last_requests_of_a_killed_launcher(stand_in: StandIn) -> None:
    process = stand_in.start_service()
    with socket.create_connection(("127.0.0.1", stand_in.port)) as caller:
        caller.sendall(b"GET /?seconds=6 HTTP/1.0\r\n\r\n")
        time.sleep(0.5)
        kill_with_watchdog(stand_in, process)
        second = stand_in.start_service()
        assert caller.recv(100).startswith(b"HTTP/1.0 200 OK")
    assert f"Waiting for port {stand_in.port}: " in stop(second)


def test_whoever_dies_comes_back(stand_in: StandIn) -> None:
    process = stand_in.start_service()
    servers = stand_in.runtime()["servers"]
    assert isinstance(servers, dict)
    programs = [line.split()[0] for line in processes_in(stand_in.path) if "manage.py worker" in line]
    for pid in (*programs, *servers.values()):
        os.kill(int(pid), signal.SIGKILL)
    assert eventually(lambda: stand_in.finish("manage", "count").stdout == "1\n")
    assert eventually(lambda: any("manage.py worker" in line for line in processes_in(stand_in.path)))
    said = stop(process)
    assert "worker ended with code -9; starting it again in 1 s" in said
    assert "postgres ended with code -9" in said
    assert "redis ended with code -9" in said


def test_a_busy_port_is_one_sentence_before_anything_starts(stand_in: StandIn) -> None:
    with socket.create_server(("127.0.0.1", stand_in.port)):
        done = stand_in.finish("run")
    assert done.returncode == 1
    assert done.stderr.startswith(f"Port {stand_in.port} is in use by another program")
    assert done.stderr.count("\n") == 1
    assert not (stand_in.data / "servers").exists()


@pytest.mark.parametrize("port", ["http", "0", "65536", "-1"])
def test_a_senseless_port_is_one_sentence(stand_in: StandIn, port: str) -> None:
    done = stand_in.finish("run", PORT=port)
    assert done.returncode == 1
    assert done.stderr == f"PORT={port} is not a port: choose a number from 1 to 65535.\n"


def test_a_second_launcher_on_the_same_data_is_refused(stand_in: StandIn) -> None:
    process = stand_in.start_service()
    done = stand_in.finish("run")
    assert done.returncode == 1
    assert done.stderr.startswith(f"Postrider already runs on {stand_in.data} at")
    assert done.stderr.count("\n") == 1
    assert stand_in.answers()
    stop(process)


def test_a_program_that_cannot_start_is_a_sentence_with_its_words(stand_in: StandIn) -> None:
    (stand_in.path / "config" / "wsgi.py").write_text("raise SystemExit('a setting is wrong')")
    done = stand_in.finish("run")
    assert done.returncode == 1
    assert "web does not start" in done.stderr
    assert "a setting is wrong" in done.stderr
    assert stand_in.is_empty()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's servers run as somebody else")
def test_roots_closed_directory_is_no_obstacle(place: Path) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    stand_in = build_stand_in(closed / "postrider")
    try:
        stop(stand_in.start_service())
        (home,) = stand_in.homes
        assert (home / "postgres" / "PG_VERSION").exists()
        assert (stand_in.data / "servers-are-in").read_text() == f"{home}\n"
        stop(stand_in.start_service())
        assert stand_in.finish("manage", "count").stdout == "2\n"
        assert stand_in.homes == [home]
    finally:
        stand_in.remove()
