"""Attacks on the submission server, each of which goes on beside an ordinary sender until its context ends.

The attacker is a workspace with one key, or a client without one, at other addresses than those of the sender.
"""

import contextlib
import smtplib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.stack.stack import Stack

Act = Callable[[Stack, str, threading.Event], None]

LINE = b"x" * 998 + b"\r\n"
HEADER = b"From: a@attacker.example\r\nTo: b@example.com\r\nSubject: x\r\n\r\n"
PAUSE_SECONDS = 0.05
CREATE = """
from uuid import uuid4
from core.workspaces.models import User
from core.workspaces.services import create_workspace, issue_api_key
owner = User.objects.create(email=f"{uuid4().hex}@attacker.example")
workspace = create_workspace(name="attacker", plan="enterprise", owner=owner)
print(issue_api_key(workspace, name="attack", scope="full_access")[1].text)
"""


@contextmanager
def large_messages_that_stop(stack: Stack) -> Iterator[None]:
    """Keep 13 messages of 1.9 MB unfinished: each ends with the server's patience, and begins again."""
    key = attacker_key(stack)

    def hold_message(stack: Stack, address: str, stop: threading.Event) -> None:
        with _connect(stack, address) as client:
            client.login("x", key)
            client.mail("a@attacker.example")
            client.rcpt("b@example.com")
            client.docmd("DATA")
            assert client.sock
            client.sock.sendall(HEADER + LINE * 1_900)
            _wait_for_end(client.sock, stop)

    with _running(stack, hold_message, threads=13):
        yield


@contextmanager
def sessions_of_one_key(stack: Stack) -> Iterator[None]:
    """Open sessions from four addresses until they are refused, keep them busy, and replace those that end."""
    key = attacker_key(stack)

    def hold_sessions(stack: Stack, address: str, stop: threading.Event) -> None:
        with contextlib.ExitStack() as opened:
            clients: list[smtplib.SMTP] = []
            try:
                while not stop.is_set():
                    clients.append(opened.enter_context(_connect(stack, address)))
                    clients[-1].login("x", key)
            except (OSError, smtplib.SMTPException):
                while not stop.wait(PAUSE_SECONDS):
                    for client in clients:
                        with contextlib.suppress(OSError, smtplib.SMTPException):
                            client.noop()

    with _running(stack, hold_sessions, threads=4):
        yield


@contextmanager
def lines_without_a_key(stack: Stack) -> Iterator[None]:
    """Send empty and non-ASCII lines without a key as fast as the server reads them, from four addresses."""

    def send_lines(stack: Stack, address: str, stop: threading.Event) -> None:
        port = int(stack.environment["SUBMISSION_PORTS"])
        with socket.create_connection(("127.0.0.1", port), timeout=5, source_address=(address, 0)) as connection:
            connection.recv(1_000)
            reader = threading.Thread(target=_read_all, args=[connection], daemon=True)
            reader.start()
            while not stop.is_set():
                connection.sendall(b"\r\n\xff\r\n" * 2_000)

    with _running(stack, send_lines, threads=4):
        yield


ATTACKS = {
    "large messages that stop": large_messages_that_stop,
    "sessions of one key": sessions_of_one_key,
    "lines without a key": lines_without_a_key,
}


def attacker_key(stack: Stack) -> str:
    """Create another workspace in the database of a stack; return a key of it."""
    return stack.manage("shell", "-c", CREATE).splitlines()[-1]


@contextmanager
def _running(stack: Stack, act: Act, *, threads: int) -> Iterator[None]:
    """Repeat an act in threads, each at an address of its own."""
    stop = threading.Event()

    def repeat(address: str) -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError, smtplib.SMTPException):
                act(stack, address, stop)
            # An act that is refused at once must not be an attack on this machine.
            time.sleep(PAUSE_SECONDS)

    workers = [
        threading.Thread(target=repeat, args=[f"127.0.66.{1 + number % 4}"], daemon=True) for number in range(threads)
    ]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        stop.set()
        for worker in workers:
            worker.join()


def _connect(stack: Stack, address: str) -> smtplib.SMTP:
    port = int(stack.environment["SUBMISSION_PORTS"])
    return smtplib.SMTP("127.0.0.1", port, timeout=10, source_address=(address, 0))


def _wait_for_end(connection: socket.socket, stop: threading.Event) -> None:
    """Wait until the server or the attack ends."""
    connection.settimeout(PAUSE_SECONDS)
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            if not connection.recv(1_000):
                return


def _read_all(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while connection.recv(65_536):
            pass
