"""A process for each core serves; the others take over from those that a request holds."""

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


def test_as_many_as_there_are_cores_serve(stack):
    for _ in range(50):
        stack.call("GET", "/me")
    assert 1 <= connections(stack) <= CORES


def test_those_who_are_held_are_relieved(stack):
    # All but one of the 2 x cores + 1.
    held = [half_a_request(stack) for _ in range(2 * CORES)]
    started = time.monotonic()
    answers = [stack.call("GET", "/me").status for _ in range(5)]
    assert answers == [200] * 5
    assert time.monotonic() - started < 5
    for one in held:
        one.close()


def test_a_caller_who_does_not_close_holds_nobody(stack):
    callers = [answered(stack) for _ in range(20)]
    started = time.monotonic()
    assert stack.call("GET", "/me").status == 200
    assert time.monotonic() - started < 1
    for caller in callers:
        caller.close()


def test_whoever_is_killed_is_replaced(stack):
    for child in children(stack)[:CORES]:
        os.kill(child, signal.SIGKILL)
    assert [stack.call("GET", "/me").status for _ in range(5)] == [200] * 5
    wait_for(lambda: len(children(stack)) == 2 * CORES + 1, seconds=20, what="all are there again")
    for _ in range(50):
        stack.call("GET", "/me")
    assert connections(stack) <= 2 * CORES


def test_a_reload_ends_with_others_who_serve(stack):
    before = set(children(stack))
    os.kill(stack.processes["web"].pid, signal.SIGHUP)
    wait_for(lambda: children(stack) and not before & set(children(stack)), seconds=30, what="all are new")
    assert [stack.call("GET", "/me").status for _ in range(5)] == [200] * 5


def half_a_request(stack: Stack) -> socket.socket:
    """Send a part of a body, which whoever takes it waits for the rest of."""
    connection = socket.create_connection(("127.0.0.1", int(stack.environment["PORT"])))
    head = f"POST /v1/emails/send HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {stack.key}\r\n"
    connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
    return connection


def answered(stack: Stack) -> socket.socket:
    """Read an answer to its end, and leave the connection as it is."""
    connection = socket.create_connection(("127.0.0.1", int(stack.environment["PORT"])))
    connection.sendall(f"GET /v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {stack.key}\r\n\r\n".encode())
    answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200 OK")
    return connection


def children(stack: Stack) -> list[int]:
    pid = stack.processes["web"].pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def connections(stack: Stack) -> int:
    """Return how many processes have asked the database for something, this one left out."""
    sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    return int(stack.query(sql)[0][0])
