"""Hostile clients against the real process: it stays below 200 MB, and other sessions get their replies."""

import contextlib
import smtplib
import socket
from pathlib import Path

import pytest

from tests.interfaces.submission.fixtures import begin_message, connected, submit
from tests.rows import each
from tests.stack.stack import running_stack, wait_for

pytestmark = pytest.mark.stack

MAX_MEGABYTES = 200
IDLE_SESSIONS = 1_000
MAX_IDLE_MEGABYTES = 60
HEAD = b"From: hello@demo.example\r\nTo: ada@example.com\r\nSubject: Hello\r\n"


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    with running_stack(tmp_path_factory.mktemp("hostile"), SUBMISSION_SESSIONS="5000") as stack:
        stack.start("submission")
        assert submit(stack, HEAD + b"\r\nHello\r\n")[0] == 250
        yield stack


def serving_process(stack) -> int:
    """Return the id of the process that accepts sessions: the child of the one that opened the sockets."""
    parent = stack.processes["submission"].pid
    (child,) = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return int(child)


def megabytes(stack, field: str = "VmHWM") -> float:
    """Return the memory of the process: its maximum so far, or VmRSS for now."""
    lines = Path(f"/proc/{serving_process(stack)}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def nested(levels: int) -> bytes:
    parts = (
        b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (level, level) for level in range(levels)
    )
    return HEAD + b"".join(parts)


MESSAGES = {
    "nested parts": nested(5_000),
    "many parts": HEAD + b"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + b"--b\r\n\r\n" * 90_000,
    "a huge header": HEAD + b"X-A: " + b"x y " * 3_900 + b"\r\n" + b" x\r\n" * 300_000 + b"\r\n",
    "many fields": HEAD + b"X: y\r\n" * 300_000 + b"\r\n",
    "many addresses": HEAD + b"Cc: " + b"a@b.example,\r\n " * 4_000 + b"\r\n\r\n",
    "open comments": b"From: " + b"(" * 15_000 + b"\r\n\r\n",
    "NUL": HEAD + b"\r\n" + b"\0" * 10_000 + b"\r\n",
    "encoded words": HEAD + b"X-A: " + b"=?utf-8?q?" * 1_500 + b"\r\n\r\n",
    "parameters": HEAD + b"Content-Type: multipart/mixed; " + b'a="' * 1_300 + b"\r\n\r\n",
    "empty lines": HEAD + b"\r\n" + b"\r\n" * 390_000,
    "false boundaries": HEAD + b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n" + b"--bb\r\n" * 300_000,
    "too many lines": HEAD + b"\r\n" + b"\r\n" * 410_000,
    "a large attachment": HEAD
    + b"Content-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    + (b"QUFB" * 19 + b"\r\n") * 180_000,
}


@each("name", MESSAGES)
def test_a_hostile_message_is_answered_in_bounded_memory(stack, name):
    with connected(stack) as other:
        with contextlib.suppress(OSError, smtplib.SMTPException):
            assert submit(stack, MESSAGES[name])[0] in {250, 421, 550, 552, 554}
        assert other.noop()[0] == 250
    assert submit(stack, HEAD + b"\r\nHello\r\n")[0] == 250
    assert megabytes(stack) < MAX_MEGABYTES


def test_twenty_large_messages_at_once_stay_in_memory(stack):
    line = b"x" * 998 + b"\r\n"
    with contextlib.ExitStack() as opened:
        clients = [opened.enter_context(connected(stack)) for _ in range(20)]
        for client in clients:
            begin_message(client)
            client.sock.settimeout(2)
        for client in clients:
            with contextlib.suppress(OSError):
                client.sock.sendall(HEAD + b"\r\n" + line * 5_000)
        assert submit(stack, HEAD + b"\r\nHello\r\n")[0] in {250, 421}
        for client in clients:
            client.close()
    wait_for(lambda: submit(stack, HEAD + b"\r\nHello\r\n")[0] == 250, seconds=30, what="the memory is free again")
    assert megabytes(stack) < MAX_MEGABYTES


def test_ten_thousand_recipients_end_the_session(stack):
    with connected(stack) as client:
        client.mail("a@b.example")
        with contextlib.suppress(OSError, smtplib.SMTPException):
            client.sock.sendall(b"RCPT TO:<root>\r\n" * 10_000)
        with contextlib.suppress(OSError):
            replies = client.sock.makefile("rb").read().splitlines()
            assert len(replies) < 2_000
    assert submit(stack, HEAD + b"\r\nHello\r\n")[0] == 250


def test_endless_lines_end_the_session(stack):
    with connected(stack) as client:
        begin_message(client)
        with pytest.raises(OSError):
            client.sock.sendall(b"x" * 128 * 1024 * 1024)
    assert submit(stack, HEAD + b"\r\nHello\r\n")[0] == 250
    assert megabytes(stack) < MAX_MEGABYTES


def test_a_thousand_idle_sessions_cost_little_memory(stack):
    before = megabytes(stack, "VmRSS")
    with contextlib.ExitStack() as idle:
        address = ("127.0.0.1", int(stack.environment["SUBMISSION_PORTS"]))
        for number in range(IDLE_SESSIONS):
            # Each address has few sessions that have not signed in.
            source = (f"127.0.1.{1 + number // 10}", 0)
            session = idle.enter_context(socket.create_connection(address, timeout=60, source_address=source))
            assert session.recv(100).startswith(b"220")
        assert megabytes(stack, "VmRSS") - before < MAX_IDLE_MEGABYTES
        assert submit(stack, HEAD + b"\r\nHello\r\n")[0] == 250
