"""One web process per core serves; standby processes take over when a process is busy with a slow request."""

import multiprocessing
import os
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.stack.stack import Stack, wait_for

pytestmark = pytest.mark.stack
CORES = multiprocessing.cpu_count()


@pytest.fixture
def stack(stack: Stack) -> Stack:
    stack.start("web", WEB_CONCURRENCY="0")
    return stack


def test_at_most_one_process_per_core_serves(stack):
    for _ in range(50):
        stack.call("GET", "/me")
    assert 1 <= database_connections(stack) <= CORES


def test_standby_processes_replace_busy_ones(stack):
    # All but one of the 2 x cores + 1.
    busy = [send_incomplete_request(stack) for _ in range(2 * CORES)]
    started = time.monotonic()
    answers = [stack.call("GET", "/me").status for _ in range(5)]
    assert answers == [200] * 5
    assert time.monotonic() - started < 5
    for connection in busy:
        connection.close()


def test_an_idle_connection_does_not_block_a_process(stack):
    connections = [send_and_keep_open(stack) for _ in range(20)]
    started = time.monotonic()
    assert stack.call("GET", "/me").status == 200
    assert time.monotonic() - started < 1
    for connection in connections:
        connection.close()


def test_killed_processes_are_replaced(stack):
    for child in children(stack)[:CORES]:
        os.kill(child, signal.SIGKILL)
    assert [stack.call("GET", "/me").status for _ in range(5)] == [200] * 5
    wait_for(lambda: len(children(stack)) == 2 * CORES + 1, seconds=20, what="all processes are running")
    for _ in range(50):
        stack.call("GET", "/me")
    assert database_connections(stack) <= 2 * CORES


def test_a_reload_replaces_all_processes(stack):
    before = set(children(stack))
    os.kill(stack.processes["web"].pid, signal.SIGHUP)
    wait_for(lambda: children(stack) and not before & set(children(stack)), seconds=30, what="all processes are new")
    assert [stack.call("GET", "/me").status for _ in range(5)] == [200] * 5


def send_incomplete_request(stack: Stack) -> socket.socket:
    """Send an incomplete body, so that the process waits for the rest."""
    connection = socket.create_connection(("127.0.0.1", int(stack.environment["PORT"])))
    head = f"POST /v1/emails/send HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {stack.key}\r\n"
    connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
    return connection


def send_and_keep_open(stack: Stack) -> socket.socket:
    """Read a complete answer without closing the connection."""
    connection = socket.create_connection(("127.0.0.1", int(stack.environment["PORT"])))
    connection.sendall(f"GET /v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {stack.key}\r\n\r\n".encode())
    answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200 OK")
    return connection


def children(stack: Stack) -> list[int]:
    pid = stack.processes["web"].pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def database_connections(stack: Stack) -> int:
    """Return the number of database connections, without this one."""
    sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    return int(stack.query(sql)[0][0])
