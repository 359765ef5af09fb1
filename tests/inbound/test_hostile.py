"""Raw sockets that speak SMTP as no honest host does."""

import contextlib
import socket
import time

import pytest

from inbound.models import MailReport
from inbound.protocol import Limits
from tests.inbound.dsns import dsn
from tests.inbound.stage import path_of, receiver, sent

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def path(workspace):
    return path_of(sent(workspace)).encode()


def opened(line, path: bytes) -> None:
    """Bring a session to where the data goes."""
    line.say(b"MAIL FROM:<>\r\n")
    line.say(b"RCPT TO:<" + path + b">\r\n")
    assert line.say(b"DATA\r\n").startswith("354")


def send_on(line, piece: bytes, *, seconds: float) -> None:
    """Send a piece again and again."""
    for _ in range(2_000):
        line.connection.sendall(piece)
        time.sleep(seconds)


SMUGGLED = b"MAIL FROM:<eve@example.com>\r\nRCPT TO:<postmaster@bounce.localhost>\r\nDATA\r\nSmuggled\r\n.\r\n"


def test_no_end_but_one_ends_a_message(port, path):
    for end in (b"\n.\n", b"\n.\r\n", b"\r.\r", b"\r.\r\n", b"\r\n.\n", b"\r\n.\r", b"\n.\r"):
        with port.raw() as line:
            opened(line, path)
            line.connection.sendall(b"Subject: x\r\n\r\nHello" + end + SMUGGLED)
            assert line.rest().startswith("521 5.5.2"), end
    assert not MailReport.objects.exists()


@pytest.mark.parametrize("end", [b"\n.\n", b"\r.\r"])
def test_nor_when_it_comes_in_pieces(port, path, end):
    with port.raw() as line:
        opened(line, path)
        line.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        said = ""
        with contextlib.suppress(ConnectionError):
            for byte in b"Hello" + end + b"x":
                line.connection.sendall(bytes([byte]))
                time.sleep(0.002)
            said = line.rest()
        assert not said.startswith("250")
    assert not MailReport.objects.exists()


def test_a_cr_and_an_lf_in_two_pieces_are_a_line_end(port, path):
    with port.raw() as line:
        opened(line, path)
        for piece in (b"Subject: x\r", b"\n\r\nHello\r\n.\r", b"\n"):
            line.connection.sendall(piece)
            time.sleep(0.01)
        assert line.read().startswith("250")
    assert bytes(MailReport.objects.get().source) == b"Subject: x\r\n\r\nHello\r\n"


def test_leading_dots_are_taken_off_once(port, path):
    with port.raw() as line:
        opened(line, path)
        assert line.say(b"..one\r\n...two\r\n.\r\n").startswith("250")
    assert bytes(MailReport.objects.get().source) == b".one\r\n..two\r\n"


def test_commands_end_with_crlf_too(port):
    with port.raw(greeted=False) as line:
        assert line.say(b"EHLO mx.example.com\n").startswith("521")


GARBAGE = [
    b"\x00\x01\x02\r\n" * 50,
    b"\xff" * 900 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 10,
    b"RCPT TO:" + b"(" * 480 + b"\r\n",
    b"MAIL FROM:<" + b'"' * 400 + b"\r\n",
    b"MAIL FROM:<>\r\n" + b"RCPT TO:<\xc3\xa9@bounce.localhost>\r\n" * 3,
    b"\r\n" * 2_000,
    b"EHLO " + b"x" * 100_000 + b"\r\n",
]


def test_garbage_in_a_pipeline_hurts_nobody(port, path):
    for garbage in GARBAGE:
        with port.raw() as line:
            line.connection.sendall(garbage + b"QUIT\r\n")
            said = line.rest()
        assert "Traceback" not in said
        assert "Error: (" not in said
    assert port.send(dsn(), path.decode())[0] == 250


def test_a_thousand_recipients_are_turned_away(port):
    with port.raw() as line:
        line.say(b"MAIL FROM:<>\r\n")
        line.connection.sendall(b"".join(b"RCPT TO:<u%d@bounce.localhost>\r\n" % number for number in range(1_000)))
        replies = line.rest().splitlines()
    assert {reply[:3] for reply in replies} == {"550"}
    assert len(replies) <= Limits().refusals + 1


def test_an_endless_line_ends(path):
    with receiver(Limits(message_bytes=50_000)) as port, port.raw() as line:
        opened(line, path)
        with pytest.raises(ConnectionError):
            send_on(line, b"x" * 10_000, seconds=0)


def test_a_message_of_empty_lines_ends(path):
    with receiver(Limits(lines=1_000)) as port, port.raw() as line:
        opened(line, path)
        line.connection.sendall(b"\r\n" * 1_001)
        assert line.rest().startswith("552")


def test_a_line_that_is_too_long_is_refused_and_the_session_goes_on(port, path):
    with port.raw() as line:
        opened(line, path)
        assert line.say(b"x" * 40_000 + b"\r\n.\r\n").startswith("500")
        assert line.say(b"NOOP\r\n").startswith("250")


def test_lines_longer_than_the_standard_allows_are_taken(port, path):
    assert port.send(b"Subject: x\r\n\r\n" + b"x" * 5_000 + b"\r\n", path.decode())[0] == 250


def test_a_silent_session_ends(path):
    with receiver(Limits(idle_seconds=0.3)) as port, port.raw() as line:
        assert line.rest() == ""


def test_a_sender_of_a_byte_now_and_then_ends(path):
    with receiver(Limits(idle_seconds=0.3)) as port, port.raw() as line:
        opened(line, path)
        with pytest.raises(ConnectionError):
            send_on(line, b"x", seconds=0.02)


def test_a_session_that_is_always_busy_ends_too(path):
    with receiver(Limits(session_seconds=0.5)) as port, port.raw() as line:
        said = ""
        while said := line.say(b"MAIL FROM:<>\r\n"):
            if said.startswith("421"):
                break
            line.say(b"RSET\r\n")
        assert "421" in said or said == ""


def test_a_session_that_breaks_off_stores_nothing(port, path):
    with port.raw() as line:
        opened(line, path)
        line.connection.sendall(dsn())
    assert not MailReport.objects.exists()
    assert port.send(dsn(), path.decode())[0] == 250
