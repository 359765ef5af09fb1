"""Shares of the inbound server's sessions and memory: attackers work beside other senders (docs/decisions/0295)."""

import contextlib
import socket
import threading
import time
from contextlib import ExitStack

import pytest

from core.lib.mail.smtp_limits import SessionLimits
from interfaces.inbound import report_recipients
from interfaces.inbound.models import MailReport
from tests.interfaces.inbound.dsns import dsn
from tests.interfaces.inbound.fixtures import RawSession, return_path_of, run_inbound, sent_recipient

pytestmark = pytest.mark.django_db(transaction=True)

# Twenty sessions, of which five addresses hold all.
ATTACKERS = [f"127.0.66.{number % 5 + 1}" for number in range(20)]
OTHERS = [f"127.0.67.{number + 1}" for number in range(8)]
MIB = 1024 * 1024


@pytest.fixture
def path(workspace):
    return return_path_of(sent_recipient(workspace))


def connect(opened: ExitStack, port, address: str) -> RawSession:
    connection = socket.create_connection(("127.0.0.1", port.number), timeout=20, source_address=(address, 0))
    return RawSession(opened.enter_context(connection))


def begin(session: RawSession, path: str, *, size: int = 0) -> str:
    """Begin a message; return the reply to DATA, or the one that ended the session before."""
    if not (reply := session.read()).startswith("220"):
        return reply
    session.exchange(b"EHLO mx.example.com\r\n")
    session.exchange(f"MAIL FROM:<> SIZE={size}\r\n".encode())
    session.exchange(f"RCPT TO:<{path}>\r\n".encode())
    return session.exchange(b"DATA\r\n")


def deliver(port, address: str, path: str) -> str:
    with ExitStack() as opened:
        session = connect(opened, port, address)
        reply = begin(session, path)
        return session.exchange(dsn() + b"\r\n.\r\n") if reply.startswith("354") else reply


def test_five_addresses_with_slow_messages_leave_sessions_to_others(path):
    limits = SessionLimits(sessions=20, sessions_per_peer=4)
    with run_inbound(limits) as port, ExitStack() as opened:
        attacks = [begin(connect(opened, port, address), path)[:3] for address in ATTACKERS]
        # The last fifth is reserved, except for the first session of the fifth address.
        assert attacks.count("354") <= 17
        for address in OTHERS:
            assert deliver(port, address, path).startswith("250")


def test_the_slowest_message_ends_for_a_session_that_finds_no_room(path):
    limits = SessionLimits(sessions=4, sessions_per_peer=1, patience_seconds=0.5)
    with run_inbound(limits) as port, ExitStack() as opened:
        slow, *steady = (connect(opened, port, address) for address in OTHERS[:4])
        for session in (slow, *steady):
            assert begin(session, path).startswith("354")
        late = time.monotonic() + 0.8
        while time.monotonic() < late:
            slow.connection.sendall(b"x")
            for session in steady:
                session.connection.sendall((b"x" * 76 + b"\r\n") * 100)
            time.sleep(0.05)
        assert deliver(port, OTHERS[4], path).startswith("250")
        assert slow.read_all().startswith("421 4.4.2")
        for session in steady:
            assert session.exchange(b"\r\n.\r\n").startswith("250")


def test_a_session_that_waits_for_the_server_is_not_slow(path, monkeypatch):
    is_storing, may_store = threading.Event(), threading.Event()

    def wait(point: str) -> None:
        is_storing.set()
        assert may_store.wait(20), point

    monkeypatch.setattr(report_recipients, "failpoint", wait)
    with run_inbound(SessionLimits(sessions=1, patience_seconds=0)) as port, ExitStack() as opened:
        session = connect(opened, port, OTHERS[0])
        assert begin(session, path).startswith("354")
        session.connection.sendall(dsn() + b"\r\n.\r\n")
        assert is_storing.wait(20)
        assert connect(opened, port, OTHERS[1]).read().startswith("421")
        may_store.set()
        assert session.read().startswith("250")
    assert MailReport.objects.count() == 1


def test_the_slowest_message_ends_for_one_that_needs_memory(path, settings):
    """The messages of an attacker have announced all memory for reports, and stop."""
    settings.RECEIVING_MEMORY_BYTES = 5 * MIB
    with run_inbound(SessionLimits(patience_seconds=0.5)) as port, ExitStack() as opened:
        attacker, waiting = (connect(opened, port, address) for address in OTHERS[:2])
        assert begin(attacker, path, size=MIB).startswith("354")
        assert begin(waiting, path, size=MIB).startswith("452 4.3.1")
        time.sleep(0.6)
        waiting.exchange(f"MAIL FROM:<> SIZE={MIB}\r\n".encode())
        waiting.exchange(f"RCPT TO:<{path}>\r\n".encode())
        assert waiting.exchange(b"DATA\r\n").startswith("354")
        assert attacker.read_all().startswith("421 4.4.2")
        assert waiting.exchange(dsn() + b"\r\n.\r\n").startswith("250")


def test_the_least_rate_rises_when_it_is_crowded(path):
    """A message that is fast enough beside few others ends beside many."""
    limits = SessionLimits(sessions=4, sessions_per_peer=1, arrival_seconds=0.5, arrival_bytes=1_000)

    def ends(others: int) -> bool:
        with run_inbound(limits) as port, ExitStack() as opened:
            session = connect(opened, port, OTHERS[0])
            assert begin(session, path).startswith("354")
            for address in OTHERS[1 : others + 1]:
                assert connect(opened, port, address).read().startswith("220")
            with contextlib.suppress(OSError):
                for _ in range(30):
                    session.connection.sendall(b"x" * 250 + b"\r\n")
                    time.sleep(0.05)
            return not session.exchange(b"\r\n.\r\n").startswith("250")

    assert (ends(1), ends(3)) == (False, True)
