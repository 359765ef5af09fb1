"""Sessions over real SMTP: permitted senders, the command that is refused, and the reply to each refusal."""

import re
import smtplib
import socket
import ssl
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import trustme
from django.db import OperationalError

from core.lib.network.listening import CannotListen
from core.lib.token_bucket import memory_buckets
from core.workspaces.api import authentication
from core.workspaces.models import ApiKey, Usage, Workspace
from core.workspaces.services import revoke_api_key
from emails.models import Acceptance, Email, Recipient
from interfaces.submission.server import open_listeners, session_limits
from suppressions.services import suppress_address
from tests.conftest import make_key
from tests.emails.builders import claim_entries
from tests.interfaces.submission.fixtures import MESSAGE, begin_message, run_submission, write_certificate
from tests.rows import each
from tests.stack.stack import free_port, wait_for

pytestmark = pytest.mark.django_db(transaction=True)

# RFC 2034, section 4.
CODE = re.compile(rb"[245]\.\d{1,3}\.\d{1,3} ")


def login_code(port, key: str) -> tuple[int, bytes]:
    with smtplib.SMTP("127.0.0.1", port.number, timeout=20) as client:
        try:
            return client.login("postrider", key)
        except smtplib.SMTPAuthenticationError as refusal:
            return refusal.smtp_code, refusal.smtp_error


class TestSignIn:
    def test_a_wrong_revoked_expired_or_reading_key_is_refused(self, port, workspace):
        typo = port.key[:-1] + ("1" if port.key.endswith("0") else "0")
        keys = {"": "format", "x": "format", typo: "format"}
        keys[make_key(workspace, "read_only")] = "scope"
        keys[make_key(workspace, expires_at=datetime.now(UTC) - timedelta(days=1))] = "expired"
        revoked = make_key(workspace)
        revoke_api_key(ApiKey.objects.latest("created_at"))
        keys[revoked] = "revoked"
        for key, reason in keys.items():
            code, text = login_code(port, key)
            assert (code, reason in text.decode()) == (535, True), text

    def test_a_key_that_may_only_send_sends(self, port, workspace):
        port.key = make_key(workspace, "sending_only")
        assert port.submit()[0] == 250
        assert Email.objects.get().workspace == workspace

    def test_failures_are_throttled_with_those_of_the_api(self, port, settings):
        settings.RATE_LIMIT = (1000, 1000)
        memory_buckets.clear()
        codes = {login_code(port, "wrong")[0] for _ in range(25)}
        assert codes == {535, 454}
        assert login_code(port, port.key)[0] == 235

    def test_a_key_that_is_revoked_in_an_open_session_stops_at_the_next_message(self, port):
        with port.client() as client:
            assert client.mail("a@b.example")[0] == 250
            client.rset()
            revoke_api_key(ApiKey.objects.get())
            wait_for(lambda: (client.rset(), client.mail("a@b.example"))[1][0] == 535, seconds=60, what="a refusal")

    @pytest.mark.parametrize("stop", ["revoke", "suspend"])
    def test_a_key_that_is_stopped_while_a_message_arrives_sends_nothing(self, port, workspace, stop):
        with port.client() as client:
            begin_message(client)
            if stop == "revoke":
                revoke_api_key(ApiKey.objects.get())
            else:
                Workspace.objects.filter(id=workspace.id).update(suspended_at=datetime.now(UTC))
            # Each process reads a key at most once a second.
            authentication.cache.clear()
            client.send(MESSAGE + b".\r\n")
            code, _ = client.getreply()
        assert code == {"revoke": 535, "suspend": 550}[stop]
        assert not Email.objects.exists()

    def test_nothing_works_before_signing_in(self, port):
        with port.open_session() as session:
            for command in (b"MAIL FROM:<a@b.example>\r\n", b"RCPT TO:<a@b.example>\r\n", b"DATA\r\n"):
                assert session.exchange(command).startswith("530 5.7.0")

    def test_use_is_recorded(self, port):
        assert port.submit()[0] == 250
        assert ApiKey.objects.get().last_used_at


class TestTls:
    def trusting(self, authority):
        context = ssl.create_default_context()
        authority.configure_trust(context)
        return context

    def test_starttls_and_tls_from_the_start_allow_signing_in(self, workspace, settings, certificate):
        settings.SUBMISSION_ALLOW_PLAINTEXT = False
        key, context = make_key(workspace), self.trusting(certificate)
        with run_submission(settings, key=key) as port:
            with smtplib.SMTP("localhost", port.number, timeout=20) as client:
                client.ehlo()
                assert "auth" not in client.esmtp_features
                assert client.docmd("AUTH PLAIN x")[0] == 538
                client.starttls(context=context)
                client.login("x", key)
                assert client.sendmail("a@b.example", "ada@example.com", MESSAGE) == {}
            with smtplib.SMTP_SSL("localhost", settings.SUBMISSION_TLS_PORTS[0], timeout=20, context=context) as client:
                client.login("x", key)
                assert "starttls" not in client.esmtp_features
                assert client.sendmail("a@b.example", "ada@example.com", MESSAGE) == {}
        assert Email.objects.count() == 2

    def test_a_renewed_certificate_is_used_without_a_restart(self, workspace, settings, certificate):
        with run_submission(settings) as port:
            renewed = trustme.CA()
            write_certificate(settings, renewed)
            for port_number, kind in (
                (port.number, smtplib.SMTP),
                (settings.SUBMISSION_TLS_PORTS[0], smtplib.SMTP_SSL),
            ):
                options = {"context": self.trusting(renewed)} if kind is smtplib.SMTP_SSL else {}
                with kind("localhost", port_number, timeout=20, **options) as client:
                    if kind is smtplib.SMTP:
                        client.starttls(context=self.trusting(renewed))
                    assert client.noop()[0] == 250

    def test_a_certificate_without_its_key_is_not_used(self, workspace, settings, certificate):
        with run_submission(settings) as port:
            trustme.CA().issue_cert("localhost").cert_chain_pems[0].write_to_path(settings.SUBMISSION_TLS_CERT)
            with smtplib.SMTP("localhost", port.number, timeout=20) as client:
                client.starttls(context=self.trusting(certificate))
                assert client.noop()[0] == 250

    def test_tls_begins_only_once(self, workspace, settings, certificate):
        with run_submission(settings, key=make_key(workspace)) as port:
            context = self.trusting(certificate)
            with smtplib.SMTP("localhost", port.number, timeout=20) as client:
                client.starttls(context=context)
                client.ehlo()
                assert client.docmd("STARTTLS") == (503, b"5.5.1 TLS is in use already")
                assert client.noop()[0] == 250
            with smtplib.SMTP_SSL("localhost", settings.SUBMISSION_TLS_PORTS[0], timeout=20, context=context) as client:
                assert client.docmd("STARTTLS")[0] == 503

    def test_a_handshake_that_does_not_begin_ends_soon(self, workspace, settings, certificate, monkeypatch):
        monkeypatch.setattr("interfaces.submission.handshakes.HANDSHAKE_SECONDS", 0.3)
        with run_submission(settings):
            address = ("127.0.0.1", settings.SUBMISSION_TLS_PORTS[0])
            with socket.create_connection(address, timeout=20) as silent:
                assert silent.recv(100) == b""

    def test_connections_without_a_handshake_are_sessions_of_their_address(self, workspace, settings, certificate):
        limits = replace(session_limits(), sessions_per_peer=2)
        with run_submission(settings, limits=limits), ExitStack() as opened:
            address = ("127.0.0.1", settings.SUBMISSION_TLS_PORTS[0])
            silent = [opened.enter_context(socket.create_connection(address, timeout=20)) for _ in range(2)]
            with socket.create_connection(address, timeout=5) as refused:
                assert is_closed(refused)
            silent[0].close()
            context = self.trusting(certificate)
            wait_for(lambda: says_noop(address, context), seconds=30, what="a session is free")
            # The handshake of the last one is no session beside it.
            assert says_noop(address, context)

    def test_commands_sent_before_the_handshake_end_the_session(self, workspace, settings, certificate):
        with run_submission(settings) as port, port.open_session() as session:
            assert session.exchange(b"STARTTLS\r\nEHLO injected\r\n").startswith("503 5.5.0")
            assert session.read_all() == ""


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(100) == b""
    except ConnectionResetError:
        return True


def says_noop(address: tuple[str, int], context: ssl.SSLContext) -> bool:
    try:
        with smtplib.SMTP_SSL("localhost", address[1], timeout=20, context=context) as client:
            return client.noop()[0] == 250
    except OSError:
        return False


class TestRules:
    def test_each_message_uses_the_rate_limit_of_the_workspace(self, port, settings):
        settings.RATE_LIMIT = (1, 2)
        with port.client() as client:
            replies = []
            for _ in range(3):
                replies.append(client.mail("a@b.example"))
                client.rset()
        assert [code for code, _ in replies] == [250, 250, 451]
        assert b"4.7.1" in replies[-1][1]
        assert b"Try again in" in replies[-1][1]

    def test_a_suspended_workspace_sends_nothing(self, port, workspace):
        Workspace.objects.filter(id=workspace.id).update(suspended_at=datetime.now(UTC))
        with port.client() as client:
            code, text = client.mail("a@b.example")
        assert (code, b"suspended" in text) == (550, True)

    def test_the_monthly_quota_is_a_permanent_refusal(self, port, workspace):
        Workspace.objects.filter(id=workspace.id).update(plan="free")
        Usage.objects.create(workspace=workspace, month=datetime.now(UTC).date().replace(day=1), used=500)
        code, text = port.submit()
        resets_on = (datetime.now(UTC).replace(day=1) + timedelta(days=32)).strftime("%Y-%m-01T00:00:00.000Z")
        assert (code, text[:5]) == (550, "5.7.1")
        assert text.endswith(f"It resets at {resets_on}.")

    def test_mail_from_and_size_parameters_do_not_matter(self, port):
        with port.client() as client:
            assert client.docmd("MAIL FROM:<> SIZE=100 BODY=8BITMIME AUTH=<>")[0] == 250
            client.rcpt("ada@example.com")
            assert client.data(MESSAGE)[0] == 250
            assert client.docmd(f"MAIL FROM:<a@b.example> SIZE={17 * 1024 * 1024}")[0] == 552


class TestListeners:
    def test_each_process_has_separate_sockets_on_the_same_ports(self, settings):
        settings.SUBMISSION_HOST, settings.SUBMISSION_PORTS = "127.0.0.1", [free_port()]
        with ExitStack() as opened:
            processes = open_listeners(processes=2)
            sockets = [opened.enter_context(listener.socket) for own in processes for listener in own]
            assert [one.getsockname()[1] for one in sockets] == settings.SUBMISSION_PORTS * 2
            # The connections are distributed: each process gets some of a few hundred.
            for _ in range(200):
                opened.enter_context(socket.create_connection(sockets[0].getsockname(), timeout=20))
            for one in sockets:
                one.settimeout(20)
                opened.enter_context(one.accept()[0])

    def test_the_other_ports_are_used_without_one_of_another_program(self, settings, caplog):
        settings.SUBMISSION_HOST, settings.SUBMISSION_PORTS = "127.0.0.1", [free_port(), free_port()]
        taken, free = settings.SUBMISSION_PORTS
        with socket.create_server(("127.0.0.1", taken)):
            ((listener,),) = open_listeners()
        with listener.socket as opened:
            assert opened.getsockname()[1] == free
        assert caplog.records[-1].data["port"] == taken

    def test_a_port_of_another_program_is_not_shared(self, settings):
        settings.SUBMISSION_HOST, settings.SUBMISSION_PORTS = "127.0.0.1", [free_port()]
        with ExitStack() as opened:
            for listener in open_listeners()[0]:
                opened.enter_context(listener.socket)
            with pytest.raises(CannotListen, match="another program listens"):
                open_listeners()


class TestRecipients:
    def test_a_suppressed_recipient_is_refused_and_the_others_get_the_message(self, port, workspace):
        suppression, _ = suppress_address(workspace, address="bob@example.com", reason="bounce")
        with port.client() as client:
            refused = client.sendmail("a@b.example", ["ada@example.com", "Bob@Example.com"], MESSAGE)
        code, text = refused["Bob@Example.com"]
        assert (code, text) == (
            550,
            f"5.7.1 Bob@example.com is on the suppression list (bounce); id {suppression.id}".encode(),
        )
        assert list(Recipient.objects.values_list("address", flat=True)) == ["ada@example.com"]

    def test_a_suppressed_recipient_is_accepted_if_the_operator_wants_it(self, port, workspace, settings):
        settings.SUBMISSION_SUPPRESSED = "accept"
        suppress_address(workspace, address="ada@example.com", reason="bounce")
        assert port.submit()[0] == 250
        assert claim_entries()

    def test_an_address_suppressed_after_rcpt_refuses_the_message(self, port, workspace):
        with port.client() as client:
            client.mail("a@b.example")
            client.rcpt("ada@example.com")
            suppress_address(workspace, address="ada@example.com", reason="bounce")
            code, text = client.data(MESSAGE)
        assert (code, text[:5]) == (550, b"5.7.1")

    def test_an_invalid_address_is_refused(self, port):
        with port.client() as client:
            client.mail("a@b.example")
            for address in ("root", "a@b", "a@@b.example"):
                assert client.docmd(f"RCPT TO:<{address}>")[0] == 553

    def test_a_quoted_local_part_is_refused_with_its_reason(self, port):
        with port.client() as client:
            client.mail("a@b.example")
            reply = client.docmd('RCPT TO:<"ada l"@example.com>')
        assert reply[0] == 553
        assert b"A quoted part before the @-sign is not supported" in reply[1]

    def test_internationalized_recipients_need_smtputf8(self, port):
        address = "\u7528\u6237@\u4f8b\u3048.jp"
        stored = "\u7528\u6237@xn--r8jz45g.jp"
        source = MESSAGE.replace(b"ada@example.com", address.encode())
        with port.client() as client:
            client.command_encoding = "utf-8"
            client.mail("a@b.example")
            code, text = client.docmd(f"RCPT TO:<{address}>")
            assert (code, text[:5]) == (553, b"5.6.7")
            client.rset()
            client.mail("a@b.example", ["SMTPUTF8"])
            assert client.rcpt(address)[0] == 250
            assert client.data(source)[0] == 250
        email = Email.objects.get()
        assert (email.to, email.bcc) == ([stored], [])
        assert Recipient.objects.get().address == stored

    def test_only_recipients_may_be_internationalized(self, port):
        for name in (b"From", b"Reply-To"):
            source = b"%s: \xe7\x94\xa8@alice.example\r\n" % name + MESSAGE
            code, text = port.submit(source)
            assert (code, f"5.6.0 {name.decode()}: " in text) == (550, True)

    def test_fifty_recipients_are_accepted_and_the_next_one_belongs_to_another_message(self, port):
        with port.client() as client:
            client.mail("a@b.example")
            codes = [client.rcpt(f"r{number}@example.com")[0] for number in range(51)]
            assert codes == [250] * 50 + [452]
            assert client.data(MESSAGE)[0] == 250
        assert Recipient.objects.filter(kind="bcc").count() == 50

    def test_nobody_sees_the_blind_copies(self, port):
        assert port.submit(MESSAGE.replace(b"Subject", b"Bcc: eve@example.com\r\nSubject"), "eve@example.com")[0] == 250
        email = Email.objects.get()
        assert (email.to, email.bcc, email.headers) == (["ada@example.com"], ["eve@example.com"], {})
        assert [recipient.address for recipient in email.recipients.all()] == ["eve@example.com"]


class TestIdempotency:
    def keyed(self, key: str, body: str = "Hi") -> bytes:
        return MESSAGE.replace(b"Subject", f"Idempotency-Key: {key}\r\nSubject".encode()).replace(b"Ada", body.encode())

    def test_a_repeated_key_gets_the_same_id(self, port):
        first, second = (port.submit(self.keyed("abc")) for _ in range(2))
        assert second == (250, f"{first[1]} (already accepted)")
        assert Email.objects.count() == 1

    def test_a_key_with_another_message_is_refused(self, port):
        assert port.submit(self.keyed("abc"))[0] == 250
        code, text = port.submit(self.keyed("abc", "Ho"))
        assert (code, text[:5]) == (550, "5.6.0")

    def test_without_a_key_a_repeat_is_a_new_email(self, port):
        assert port.submit()[1] != port.submit()[1]
        assert not Acceptance.objects.exists()

    @each("key", ["x" * 256, "ü"])
    def test_an_invalid_key_is_refused(self, port, key):
        assert port.submit(self.keyed(key))[0] == 550


class TestLimits:
    def test_a_bare_line_end_ends_the_session(self, port):
        for end in (b"\n.\n", b"\n.\r\n", b"\r.\r\n", b"\r\n.\n"):
            with port.client() as client:
                begin_message(client)
                client.sock.sendall(b"Subject: x\r\n\r\nHi" + end + b"MAIL FROM:<eve@example.com>\r\n")
                assert client.getreply()[0] == 521
        assert not Email.objects.exists()

    def test_a_message_before_the_reply_to_data_ends_the_session(self, port):
        with port.client() as client:
            client.mail("a@b.example")
            client.rcpt("ada@example.com")
            client.sock.sendall(b"DATA\r\n" + MESSAGE + b".\r\n")
            assert client.getreply()[0] == 503
        assert not Email.objects.exists()

    def test_commands_may_be_pipelined_around_a_message(self, port):
        with port.client() as client:
            client.sock.sendall(b"MAIL FROM:<a@b.example>\r\nRCPT TO:<ada@example.com>\r\nDATA\r\n")
            assert [client.getreply()[0] for _ in range(3)] == [250, 250, 354]
            client.sock.sendall(MESSAGE + b".\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<eve@example.com>\r\nDATA\r\n")
            assert [client.getreply()[0] for _ in range(4)] == [250, 250, 250, 354]
            client.sock.sendall(MESSAGE + b".\r\nQUIT\r\n")
            assert [client.getreply()[0] for _ in range(2)] == [250, 221]
        assert Email.objects.count() == 2

    def test_an_empty_message_is_refused_and_ends_at_its_dot(self, port):
        with port.client() as client:
            for _ in range(2):
                begin_message(client)
                client.sock.sendall(b".\r\n")
                assert client.getreply() == (550, b"5.6.0 From: A message must have exactly one From address, not 0.")
            assert client.noop()[0] == 250

    @each(("length", "code"), [(16_384, 250), (16_385, 554)])
    def test_a_line_has_a_maximum_length(self, port, length, code):
        for before in (b"", b"x\r\n" * 7_000):
            reply = port.submit(MESSAGE + before + b"y" * length + b"\r\nz\r\n")
            assert reply[0] == code
            assert code == 250 or reply[1] == "5.6.0 A line must not exceed 16,384 bytes"

    @each(
        ("body", "code"),
        [(b"x" * 20_000, 554), (b"x" * 76 + b"\r\n" * 20, 250), ((b"x" * 998 + b"\r\n") * 17_000, 552)],
    )
    def test_a_refused_message_leaves_the_session_working(self, port, body, code):
        with port.client() as client:
            client.mail("a@b.example")
            client.rcpt("ada@example.com")
            assert client.data(MESSAGE + body)[0] == code
            assert client.mail("a@b.example")[0] == 250

    def test_messages_of_all_sessions_share_the_memory(self, port, monkeypatch):
        monkeypatch.setattr("core.lib.mail.receiving_memory.MemoryBudget.take", lambda *_: False)
        with port.client() as client:
            begin_message(client)
            client.sock.sendall(MESSAGE + b".\r\n")
            assert client.getreply()[0] == 421

    def test_sessions_per_address_are_limited(self, workspace, settings):
        limits = replace(session_limits(), sessions_per_peer=1)
        with run_submission(settings, limits=limits) as port, port.open_session(), smtplib.SMTP() as second:
            assert second.connect("127.0.0.1", port.number)[0] == 421

    @each("limit", [{"session_seconds": 0.3}, {"rcpt_seconds": 0.5}])
    def test_only_a_session_that_does_not_sign_in_is_closed_soon(self, workspace, settings, limit):
        server = run_submission(settings, key=make_key(workspace), limits=replace(session_limits(), **limit))
        with server as port, port.open_session() as stranger, port.client() as client:
            assert stranger.read_all().startswith("421")
            assert client.noop()[0] == 250

    def test_refused_recipients_end_the_session(self, port, monkeypatch):
        monkeypatch.setattr("interfaces.submission.session.SIGNED_IN_REFUSALS", 10)
        with port.client() as client:
            client.mail("a@b.example")
            client.sock.sendall(b"RCPT TO:<root>\r\n" * 20)
            replies = client.sock.makefile("rb").read().splitlines()
        assert {reply[:3] for reply in replies} == {b"553"}
        assert len(replies) == 11


class TestErrors:
    def test_an_outage_of_the_database_is_temporary_and_logged_once_with_its_end(self, port, monkeypatch, caplog):
        def fail(*_, **__):
            raise OperationalError("secret host")

        async def keep_counts(*_):
            """Save nothing: a success between two failures would end the outage."""

        with monkeypatch.context() as broken:
            broken.setattr("core.counters.process_counts.ProcessCounts.save", keep_counts)
            broken.setattr("interfaces.submission.services.send_email", fail)
            replies = [port.submit() for _ in range(3)]
        assert replies == [(451, "4.3.0 The database is unavailable; try again")] * 3
        assert port.submit()[0] == 250
        records = [record for record in caplog.records if record.name == "postrider.database"]
        assert [(record.getMessage(), bool(record.exc_info)) for record in records] == [
            ("the database does not respond", True),
            ("the database responds again", False),
        ]
        assert records[-1].data == {"failures": 3}

    def test_an_internal_error_reveals_nothing(self, port, monkeypatch):
        with monkeypatch.context() as broken:
            broken.setattr("interfaces.submission.services.read_email", lambda *_, **__: 1 / 0)
            code, text = port.submit()
        assert (code, "division" in text) == (451, False)

    def test_every_reply_has_an_enhanced_status_code(self, port):
        with port.client() as client:
            client.command_encoding = "utf-8"
            replies = {
                command: client.docmd(command)
                for command in (
                    "NOOP", "RSET", "\xff", "", "FOO", "MAIL", "MAIL FROM:<a@b.example> SIZE=99999999",
                    "MAIL FROM:<a@b.example> X=1", "RCPT TO:<a@b.example>", "DATA x", "AUTH PLAIN x", "VRFY x",
                    "QUIT x", "STARTTLS", "QUIT",
                )
            }  # fmt: skip
        assert {command: reply for command, reply in replies.items() if not CODE.match(reply[1])} == {}
        codes = {code for code, _ in replies.values()}
        assert {250, 221, 500, 501, 503, 552, 555} <= codes
        assert all(text[:1] == b"%d" % (code // 100) for code, text in replies.values())

    def test_the_extensions_are_those_that_work(self, port):
        with port.open_session(greeted=False) as session:
            offered = session.exchange(b"EHLO app.example\r\n").splitlines()
        # Programs use the first mechanism that they know: PLAIN.
        assert {line[4:] for line in offered[1:]} == {
            "SIZE 16777216", "8BITMIME", "SMTPUTF8", "AUTH PLAIN LOGIN", "PIPELINING", "ENHANCEDSTATUSCODES",
            "DELIVERBY 30",
        }  # fmt: skip
