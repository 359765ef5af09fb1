"""Hostile SMTP clients over raw sockets."""

import contextlib
import socket
import time

import pytest

from core.lib.mail.smtp_limits import SessionLimits, network_of
from interfaces.inbound.models import MailReport
from tests.interfaces.inbound.dsns import dsn
from tests.interfaces.inbound.fixtures import return_path_of, run_inbound, sent_recipient
from tests.rows import each

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def path(workspace):
    return return_path_of(sent_recipient(workspace)).encode()


def start_data(session, path: bytes) -> None:
    """Advance a session to the reply 354."""
    session.exchange(b"MAIL FROM:<>\r\n")
    session.exchange(b"RCPT TO:<" + path + b">\r\n")
    assert session.exchange(b"DATA\r\n").startswith("354")


def send_repeatedly(session, piece: bytes, *, seconds: float) -> None:
    """Send a chunk repeatedly."""
    for _ in range(2_000):
        session.connection.sendall(piece)
        time.sleep(seconds)


SMUGGLED = b"MAIL FROM:<eve@example.com>\r\nRCPT TO:<postmaster@bounce.localhost>\r\nDATA\r\nSmuggled\r\n.\r\n"


def test_only_crlf_dot_crlf_ends_a_message(port, path):
    for end in (b"\n.\n", b"\n.\r\n", b"\r.\r", b"\r.\r\n", b"\r\n.\n", b"\r\n.\r", b"\n.\r"):
        with port.open_session() as session:
            start_data(session, path)
            session.connection.sendall(b"Subject: x\r\n\r\nHello" + end + SMUGGLED)
            assert session.read_all().startswith("521 5.5.2"), end
    assert not MailReport.objects.exists()


@pytest.mark.parametrize("end", [b"\n.\n", b"\r.\r"])
def test_a_false_end_of_message_in_single_bytes_is_rejected(port, path, end):
    with port.open_session() as session:
        start_data(session, path)
        session.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reply = ""
        with contextlib.suppress(ConnectionError):
            for byte in b"Hello" + end + b"x":
                session.connection.sendall(bytes([byte]))
                time.sleep(0.002)
            reply = session.read_all()
        assert not reply.startswith("250")
    assert not MailReport.objects.exists()


def test_commands_must_end_with_crlf(port):
    with port.open_session(greeted=False) as session:
        assert session.exchange(b"EHLO mx.example.com\n").startswith("521")


GARBAGE = [
    b"\x00\x01\x02\r\n" * 50, b"\xff" * 900 + b"\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 10,
    b"RCPT TO:" + b"(" * 480 + b"\r\n", b"MAIL FROM:<" + b'"' * 400 + b"\r\n",
    b"MAIL FROM:<>\r\n" + b"RCPT TO:<\xc3\xa9@bounce.localhost>\r\n" * 3, b"\r\n" * 2_000,
    b"EHLO " + b"x" * 100_000 + b"\r\n",
]  # fmt: skip


def test_pipelined_garbage_leaves_the_inbound_server_working(port, path):
    for garbage in GARBAGE:
        with port.open_session() as session:
            session.connection.sendall(garbage + b"QUIT\r\n")
            reply = session.read_all()
        assert "Traceback" not in reply
        assert "Error: (" not in reply
    assert port.send(dsn(), path.decode())[0] == 250


def test_a_session_with_a_thousand_unknown_recipients_is_closed(port):
    with port.open_session() as session:
        session.exchange(b"MAIL FROM:<>\r\n")
        session.connection.sendall(b"".join(b"RCPT TO:<u%d@bounce.localhost>\r\n" % number for number in range(1_000)))
        replies = session.read_all().splitlines()
    assert {reply[:3] for reply in replies} == {"550"}
    assert len(replies) <= SessionLimits().refusals + 1


@each("line", [b"\r\n", b"\xff\r\n", b"x" * 600 + b"\r\n"])
def test_refused_lines_end_a_session(port, line):
    with port.open_session() as session:
        session.connection.sendall(line * 60)
        replies = session.read_all().splitlines()
    assert {reply[:9] for reply in replies} == {"500 5.5.2"}
    assert len(replies) == SessionLimits().refusals + 1


def test_a_message_that_arrives_slowly_ends(path):
    with run_inbound(SessionLimits(arrival_seconds=0.3)) as port, port.open_session() as session:
        start_data(session, path)
        assert session.read().startswith("421 4.4.2")


def test_addresses_of_one_network_share_its_sessions():
    assert network_of("2001:db8:0:1::1") == network_of("2001:db8:0:1:ffff::2") != network_of("2001:db8:0:2::1")
    assert network_of("::ffff:192.0.2.1") == network_of("192.0.2.1") != network_of("192.0.2.2")


def test_a_session_with_an_endless_line_is_closed(path):
    with run_inbound(SessionLimits(message_bytes=50_000)) as port, port.open_session() as session:
        start_data(session, path)
        with pytest.raises(ConnectionError):
            send_repeatedly(session, b"x" * 10_000, seconds=0)


def test_a_message_with_too_many_empty_lines_is_rejected(path):
    with run_inbound(SessionLimits(lines=1_000)) as port, port.open_session() as session:
        start_data(session, path)
        session.connection.sendall(b"\r\n" * 1_001)
        assert session.read_all().startswith("552")


def test_a_line_that_is_too_long_is_rejected_and_the_session_continues(port, path):
    with port.open_session() as session:
        start_data(session, path)
        assert session.exchange(b"x" * 40_000 + b"\r\n.\r\n").startswith("500")
        assert session.exchange(b"NOOP\r\n").startswith("250")


def test_lines_longer_than_the_standard_allows_are_accepted(port, path):
    assert port.send(b"Subject: x\r\n\r\n" + b"x" * 5_000 + b"\r\n", path.decode())[0] == 250


def test_an_idle_session_is_closed(path):
    with run_inbound(SessionLimits(idle_seconds=0.3)) as port, port.open_session() as session:
        assert session.read_all() == ""


def test_a_session_that_sends_single_bytes_slowly_is_closed(path):
    with run_inbound(SessionLimits(idle_seconds=0.3)) as port, port.open_session() as session:
        start_data(session, path)
        with pytest.raises(ConnectionError):
            send_repeatedly(session, b"x", seconds=0.02)


def test_a_busy_session_is_closed_at_its_time_limit(path):
    with run_inbound(SessionLimits(session_seconds=0.5)) as port, port.open_session() as session:
        replies: list[str] = []
        while not replies or replies[-1]:
            replies.append(session.exchange(b"MAIL FROM:<>\r\n"))
            session.exchange(b"RSET\r\n")
        # The 421 is the reply to either command, and lost if the server closed the connection before a command came.
        assert {reply[:3] for reply in replies} <= {"250", "421", ""}


def test_an_aborted_session_stores_nothing(port, path):
    with port.open_session() as session:
        start_data(session, path)
        session.connection.sendall(dsn())
    assert not MailReport.objects.exists()
    assert port.send(dsn(), path.decode())[0] == 250
