"""Shares of the submission server: one attacker works beside an ordinary sender (docs/decisions/0170)."""

import base64
import contextlib
import smtplib
import socket
import time
from contextlib import ExitStack
from dataclasses import replace

import pytest

from core.lib.mail import receiving_memory as memory
from interfaces.submission.server import session_limits
from tests.conftest import make_account, make_domain, make_key
from tests.interfaces.inbound.fixtures import RawSession
from tests.interfaces.submission.fixtures import MESSAGE, begin_message, run_submission
from tests.rows import each
from tests.stack.stack import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

LINE = b"x" * 998 + b"\r\n"


@pytest.fixture
def attacker(workspace):
    """The key of another workspace."""
    attacker = make_account("eve").workspace
    make_domain(attacker, "eve.example")
    return make_key(attacker)


def sign_in(opened: ExitStack, port, key: str, *, address: str = "127.0.0.1") -> smtplib.SMTP:
    """Return a client whose connection is closed without QUIT."""
    client = smtplib.SMTP("127.0.0.1", port.number, timeout=20, source_address=(address, 0))
    opened.callback(client.close)
    client.ehlo()
    credentials = base64.b64encode(f"\0x\0{key}".encode()).decode()
    client.auth_reply = client.docmd("AUTH", f"PLAIN {credentials}")
    return client


def raw_session(opened: ExitStack, port, *, address: str = "127.0.0.1") -> RawSession:
    connection = socket.create_connection(("127.0.0.1", port.number), timeout=20, source_address=(address, 0))
    return RawSession(opened.enter_context(connection))


class TestMemory:
    def test_messages_that_begin_and_stop_leave_room_for_those_of_others(self, port, attacker):
        with ExitStack() as opened:
            for _ in range(13):
                client = sign_in(opened, port, attacker)
                begin_message(client)
                with contextlib.suppress(OSError):
                    client.sock.sendall(LINE * 1_950)
            for size in (20, 1_000, 10_000):
                assert port.submit(MESSAGE + LINE * size)[0] in {250, 552}

    def test_large_messages_of_a_workspace_share_a_quarter(self, port, attacker):
        with ExitStack() as opened:
            first, second = (sign_in(opened, port, attacker) for _ in range(2))
            begin_message(first)
            first.sock.sendall(LINE * 15_000)
            wait_for(lambda: is_refused(port, attacker, 2_000), seconds=30, what="the first message fills the share")
            begin_message(second)
            second.sock.sendall(MESSAGE + LINE * 50 + b".\r\n")
            # Its key has no domain of Alice.
            assert second.getreply()[0] == 550
            assert port.submit(MESSAGE + LINE * 2_000)[0] == 552

    def test_small_messages_have_room_of_their_own(self, workspace, settings, monkeypatch):
        monkeypatch.setattr(memory, "LARGE_BYTES", 0)
        with run_submission(settings, key=make_key(workspace)) as port:
            assert port.submit(MESSAGE + LINE * 60)[0] == 250
            assert is_refused(port, port.key, 70)

    def test_a_message_that_arrives_slowly_ends(self, workspace, settings):
        limits = replace(session_limits(), arrival_seconds=0.5, arrival_bytes=1_000)
        with run_submission(settings, key=make_key(workspace), limits=limits) as port, ExitStack() as opened:
            slow, steady = (sign_in(opened, port, port.key) for _ in range(2))
            for client in (slow, steady):
                begin_message(client)
            steady.sock.sendall(MESSAGE)
            for _ in range(15):
                with contextlib.suppress(OSError):
                    slow.sock.sendall(b"x")
                steady.sock.sendall(b"x" * 300 + b"\r\n")
                time.sleep(0.1)
            assert slow.getreply()[1].startswith(b"4.4.2")
            steady.sock.sendall(b".\r\n")
            assert steady.getreply()[0] == 250


def is_refused(port, key: str, lines: int) -> bool:
    """Return whether the memory has no room for a message of so many lines."""
    with ExitStack() as opened:
        client = sign_in(opened, port, key)
        begin_message(client)
        try:
            client.sock.sendall(MESSAGE + LINE * lines + b".\r\n")
            return client.getreply()[0] == 421
        except (OSError, smtplib.SMTPException):
            return True


class TestSessions:
    def test_a_workspace_has_a_quarter_of_the_sessions_from_any_number_of_addresses(
        self, workspace, settings, attacker
    ):
        settings.SUBMISSION_SESSIONS = 8
        with run_submission(settings, key=make_key(workspace)) as port, ExitStack() as opened:
            for number in (2, 3):
                assert sign_in(opened, port, attacker, address=f"127.0.0.{number}").auth_reply[0] == 235
            for number in (2, 3, 4, 5):
                assert sign_in(opened, port, attacker, address=f"127.0.0.{number}").auth_reply[0] == 421
            assert port.submit()[0] == 250

    def test_the_session_that_sent_nothing_for_longest_ends_for_another_one(self, workspace, settings):
        settings.SUBMISSION_SESSIONS = 8
        limits = replace(session_limits(), crowded_idle_seconds=0)
        with run_submission(settings, key=make_key(workspace), limits=limits) as port, ExitStack() as opened:
            busy, idle = (sign_in(opened, port, port.key, address=f"127.0.0.{number}") for number in (2, 3))
            assert busy.noop()[0] == 250
            third = sign_in(opened, port, port.key, address="127.0.0.4")
            assert idle.getreply()[0] == 421
            assert busy.noop()[0] == third.noop()[0] == 250

    def test_sessions_of_an_address_that_have_not_signed_in_wait_for_each_other(self, port):
        limit = session_limits().new_sessions_per_peer
        with ExitStack() as opened:
            strangers = [raw_session(opened, port) for _ in range(limit)]
            assert all(session.read().startswith("220") for session in strangers)
            late = raw_session(opened, port)
            late.connection.settimeout(0.5)
            with pytest.raises(TimeoutError):
                late.read()
            assert raw_session(opened, port, address="127.0.0.2").read().startswith("220")
            strangers[0].connection.close()
            late.connection.settimeout(20)
            assert late.read().startswith("220")

    def test_a_silent_session_ends_for_one_that_waits(self, port, monkeypatch):
        monkeypatch.setattr("core.lib.mail.smtp_turns.SILENT_SECONDS", 0.3)
        with ExitStack() as opened:
            silent = [raw_session(opened, port) for _ in range(4 * session_limits().new_sessions_per_peer)]
            assert silent[0].read().startswith("220")
            for _ in range(3):
                # The others of the silent sessions wait, too.
                assert sign_in(opened, port, port.key).auth_reply[0] == 235
            assert silent[0].read().startswith("421")

    def test_sessions_that_have_signed_in_do_not_wait(self, port):
        with ExitStack() as opened:
            for _ in range(session_limits().new_sessions_per_peer + 1):
                assert sign_in(opened, port, port.key).auth_reply[0] == 235

    def test_a_client_that_does_not_read_is_disconnected(self, workspace, settings, monkeypatch):
        monkeypatch.setattr("core.lib.mail.smtp_server.LINGER_SECONDS", 0.2)
        limits = replace(session_limits(), session_seconds=0.5, sessions_per_peer=1, new_lines=400_000)
        with run_submission(settings, key=make_key(workspace), limits=limits) as port, ExitStack() as opened:
            silent = raw_session(opened, port)
            silent.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
            silent.connection.settimeout(2)
            with contextlib.suppress(OSError):
                silent.connection.sendall(b"RSET\r\n" * 300_000)
            wait_for(lambda: is_greeted(port), seconds=30, what="the session has ended")


def is_greeted(port) -> bool:
    with socket.create_connection(("127.0.0.1", port.number), timeout=20) as connection:
        return connection.recv(100).startswith(b"220")


class TestStrangers:
    @each("line", [b"\r\n", b"\xff\r\n", b"x" * 600 + b"\r\n", b"MAIL FROM:<a@b.example>\r\n"])
    def test_refused_lines_end_a_session_that_has_not_signed_in(self, port, line):
        with port.open_session() as session:
            session.connection.sendall(line * 60)
            replies = session.read_all().splitlines()
        assert {reply[:1] for reply in replies} == {"5"}
        assert len(replies) == session_limits().refusals + 1

    def test_a_session_with_many_commands_gives_way_to_others(self, port):
        with ExitStack() as opened:
            busy, other = (sign_in(opened, port, port.key) for _ in range(2))
            port.call(time.sleep, 0.5)
            busy.sock.sendall(b"NOOP\r\n" * 900)
            other.sock.sendall(b"NOOP\r\n")
            assert other.getreply()[0] == 250
            busy.sock.settimeout(0)
            assert busy.sock.recv(100_000).count(b"\r\n") < 900
