"""The inbound server over real SMTP: the addresses it accepts and rejects, and a stored row for each 250."""

import smtplib
import socket
import ssl
from io import StringIO

import pytest
import trustme
from django.core.management import CommandError, call_command
from django.db import OperationalError

from core.lib.ids import new_uuid, to_uuid
from core.lib.mail.smtp_limits import SessionLimits
from emails.models import Email
from emails.sending.return_path import return_path
from events.models import Event
from interfaces.inbound import report_recipients
from interfaces.inbound.management.commands.inbound import require_sockets
from interfaces.inbound.models import MailReport
from suppressions.models import Suppression
from tests.interfaces.inbound.dsns import complaint, dsn
from tests.interfaces.inbound.fixtures import DOMAIN, return_path_of, run_inbound, sent_recipient
from tests.rows import each
from tests.stack.stack import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def wait_until_settled():
    return wait_for(
        lambda: not MailReport.objects.filter(processed_at=None).exists() and MailReport.objects.last(),
        seconds=10,
        what="the report is processed",
    )


def test_a_report_bounces_the_email_and_suppresses_the_address(port, workspace):
    recipient = sent_recipient(workspace)
    assert port.send(dsn(), return_path_of(recipient))[0] == 250
    assert wait_until_settled().verdict == "recorded"
    assert Email.objects.get().status == "bounced"
    assert Suppression.objects.get().email == "ada@example.com"
    assert Event.objects.exclude(email=None).last().payload["reason"] == "unknown_user"


def test_the_length_of_a_command_is_limited_in_each_session_alone(port, workspace):
    with port.open_session() as session, port.open_session():
        for length, code in ((565, "250"), (566, "500")):
            parameters = b"SIZE=100 BODY=8BITMIME SMTPUTF8".rjust(length - len("MAIL FROM:<a@b.example>"))
            assert session.exchange(b"MAIL FROM:<a@b.example>" + parameters + b"\r\n").startswith(code)
            for _ in range(3):
                session.exchange(b"EHLO mx.example.com\r\n")


def test_a_token_is_case_insensitive(port, workspace):
    assert port.send(dsn(), return_path_of(sent_recipient(workspace)).upper())[0] == 250


def test_a_domains_own_bounce_name_is_accepted_for_its_own_email_only(port, workspace):
    recipient = sent_recipient(workspace)
    assert port.send(dsn(), return_path(to_uuid(recipient.id), domain="bounce.alice.example"))[0] == 250
    assert port.send(dsn(), return_path(to_uuid(recipient.id), domain="bounce.bob.example"))[0] == 550
    assert port.send(dsn(), return_path(to_uuid(recipient.id), domain="alice.example"))[0] == 550
    assert port.send(dsn(), return_path(new_uuid(), domain="bounce.alice.example"))[0] == 550


@each("address", [
    f"ada@{DOMAIN}", f"{'a' * 53}@{DOMAIN}", f"{'a' * 500}@{DOMAIN}", f"mailer-daemon@{DOMAIN}",
    "postmaster@elsewhere.example", "ada@example.com",
])  # fmt: skip
def test_any_other_address_is_rejected_at_rcpt(port, workspace, address):
    assert port.send(dsn(), address)[0] in {500, 550, 553}
    assert not MailReport.objects.exists()


def test_a_forged_token_is_rejected(port, workspace):
    good = return_path_of(sent_recipient(workspace))
    for place in (0, 10, 52):
        character = "b" if good[place] == "a" else "a"
        assert port.send(dsn(), good[:place] + character + good[place + 1 :])[0] == 550


def test_mail_to_postmaster_and_abuse_is_kept_for_review(port, workspace):
    for address in (f"postmaster@{DOMAIN}", "abuse@bounce.alice.example", f"Abuse@{DOMAIN}"):
        assert port.send(b"Subject: Hello\r\n\r\nWho are you?\r\n", address, sender="<eve@example.com>")[0] == 250
    assert wait_until_settled().verdict == "for_people"
    assert set(MailReport.objects.values_list("sender", "recipient_id")) == {("eve@example.com", None)}


def test_a_complaint_to_abuse_finds_its_recipient_by_the_enclosed_message(port, workspace):
    recipient = sent_recipient(workspace)
    message = f"Return-Path: <{return_path_of(recipient)}>\r\nSubject: Hello\r\n\r\nredacted".encode()
    assert port.send(complaint(message), f"abuse@{DOMAIN}", sender="<fbl@provider.example>")[0] == 250
    assert wait_until_settled().verdict == "recorded"
    assert Suppression.objects.get().reason == "complaint"


def test_a_message_has_one_recipient_only(port, workspace):
    first, second = sent_recipient(workspace), sent_recipient(workspace, "grace@example.com")
    with port.open_session() as session:
        session.exchange(b"MAIL FROM:<>\r\n")
        assert session.exchange(f"RCPT TO:<{return_path_of(first)}>\r\n".encode()).startswith("250")
        assert session.exchange(f"RCPT TO:<{return_path_of(second)}>\r\n".encode()).startswith("452 4.5.3")


def test_a_database_error_is_451_and_loses_no_report(port, workspace, monkeypatch):
    recipient = sent_recipient(workspace)

    def fail(*_, **__):
        raise OperationalError("the connection is closed")

    with monkeypatch.context() as patch:
        patch.setattr(MailReport, "save", fail)
        assert port.send(dsn(), return_path_of(recipient))[0] == 451
    assert port.send(dsn(), return_path_of(recipient))[0] == 250
    assert wait_until_settled().verdict == "recorded"


def test_size_is_offered_and_enforced(workspace):
    recipient = sent_recipient(workspace)
    with run_inbound(SessionLimits(message_bytes=2_000)) as port:
        with port.open_session(greeted=False) as session:
            assert "250-SIZE 2000\r\n" in session.exchange(b"EHLO mx.example.com\r\n")
            assert session.exchange(b"MAIL FROM:<> SIZE=2001\r\n").startswith("552")
        assert port.send(b"x" * 1_990 + b"\r\n", return_path_of(recipient))[0] == 250
        assert port.send(b"x" * 990 + b"\r\n" + b"x" * 1_010 + b"\r\n", return_path_of(recipient))[0] == 552


def test_sessions_per_peer_are_limited_until_one_closes(workspace):
    with run_inbound(SessionLimits(sessions_per_peer=2)) as port:
        with port.open_session() as first, port.open_session():
            with port.open_session(greeted=False) as third:
                assert third.read() == ""
            assert first.exchange(b"QUIT\r\n").startswith("221")
        wait_for(lambda: _answers(port), seconds=60, what="a session is free")


def test_total_sessions_are_limited_until_one_closes(workspace):
    recipient = sent_recipient(workspace)
    with run_inbound(SessionLimits(sessions=1)) as port:
        with port.open_session() as session, smtplib.SMTP() as late:
            begin_message(session, recipient)
            assert late.connect("127.0.0.1", port.number)[0] == 421
            assert session.exchange(b"NOOP\r\n").startswith("250")
        wait_for(lambda: _answers(port), seconds=60, what="a session is free")


def test_silent_sessions_do_not_shut_out_others(workspace):
    recipient = sent_recipient(workspace)
    with (
        run_inbound(SessionLimits(sessions=3)) as port,
        port.open_session(greeted=False) as oldest,
        port.open_session() as busy,
        port.open_session() as recent,
    ):
        begin_message(busy, recipient)
        assert recent.exchange(b"NOOP\r\n").startswith("250")
        assert port.send(b"Subject: Hi\r\n\r\nHi\r\n", return_path_of(recipient))[0] == 250
        assert oldest.read_all().startswith("421")
        for session in (busy, recent):
            assert session.exchange(b"NOOP\r\n").startswith("250")


def test_a_session_that_stops_after_its_recipient_is_ended_for_others(workspace):
    recipient = sent_recipient(workspace)
    with run_inbound(SessionLimits(sessions=1, crowded_idle_seconds=0)) as port, port.open_session() as session:
        begin_message(session, recipient)
        assert _answers(port)
        assert session.read_all().startswith("421")


def test_a_session_without_a_recipient_ends_early(workspace):
    recipient = sent_recipient(workspace)
    limits = SessionLimits(rcpt_seconds=0.5)
    with run_inbound(limits) as port, port.open_session() as silent, port.open_session() as busy:
        begin_message(busy, recipient)
        assert silent.read_all().startswith("421 4.4.2")
        assert busy.exchange(b"NOOP\r\n").startswith("250")


def begin_message(session, recipient) -> None:
    session.exchange(b"MAIL FROM:<>\r\n")
    assert session.exchange(f"RCPT TO:<{return_path_of(recipient)}>\r\n".encode()).startswith("250")


def _answers(port) -> bool:
    with port.open_session(greeted=False) as session:
        return session.exchange(b"NOOP\r\n").startswith("250")


def test_starttls_uses_a_renewed_certificate_without_a_restart(workspace, settings, tmp_path):
    settings.INBOUND_TLS_CERT, settings.INBOUND_TLS_KEY = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    write_certificate(settings, trustme.CA())
    recipient, renewed, context = sent_recipient(workspace), trustme.CA(), ssl.create_default_context()
    renewed.configure_trust(context)
    with run_inbound() as port:
        write_certificate(settings, renewed)
        with smtplib.SMTP("localhost", port.number) as client:
            client.starttls(context=context)
            client.ehlo()
            assert "auth" not in client.esmtp_features
            client.sendmail("", return_path_of(recipient), dsn())
    assert wait_until_settled().verdict == "recorded"


def write_certificate(settings, authority):
    issued = authority.issue_cert("localhost")
    issued.private_key_pem.write_to_path(settings.INBOUND_TLS_KEY)
    issued.cert_chain_pems[0].write_to_path(settings.INBOUND_TLS_CERT)


def test_a_certificate_that_cannot_be_used_is_explained(settings, tmp_path):
    settings.INBOUND_TLS_CERT = settings.INBOUND_TLS_KEY = str(tmp_path / "missing.pem")
    with pytest.raises(CommandError, match=r"INBOUND_TLS_CERT and INBOUND_TLS_KEY cannot be used.*No such file"):
        require_sockets()


def test_without_a_certificate_tls_is_not_offered(port):
    with port.open_session(greeted=False) as session:
        assert "STARTTLS" not in session.exchange(b"EHLO mx.example.com\r\n")


def test_auth_expn_and_vrfy_reveal_nothing(port):
    with port.open_session() as session:
        assert session.exchange(b"AUTH PLAIN AGEAYg==\r\n").startswith("502")
        assert session.exchange(b"VRFY postmaster\r\n").startswith("252")
        assert session.exchange(b"EXPN list\r\n").startswith("502")
        assert session.exchange(b"TURN\r\n").startswith("500")


def test_an_internal_error_is_451_so_that_the_host_retries(port, workspace, monkeypatch):
    recipient = sent_recipient(workspace)
    with monkeypatch.context() as broken:
        broken.setattr(report_recipients, "safe_text", lambda _: 1 / 0)
        code, text = port.send(dsn(), return_path_of(recipient))
        assert (code, b"division" in text) == (451, False)
    assert not MailReport.objects.exists()
    assert port.send(dsn(), return_path_of(recipient))[0] == 250


def test_a_port_of_another_program_is_an_error_without_a_word_of_success(settings, monkeypatch):
    # Keeps the name of the process that runs the tests.
    monkeypatch.setattr("interfaces.inbound.management.commands.inbound.name_process", lambda _: None)
    settings.INBOUND_HOST = "127.0.0.1"
    output = StringIO()
    with socket.create_server(("127.0.0.1", 0)) as other:
        settings.INBOUND_PORT = other.getsockname()[1]
        with pytest.raises(
            CommandError,
            match=r"Cannot listen on 127\.0\.0\.1:\d+: another program .* set INBOUND_HOST or INBOUND_PORT",
        ):
            call_command("inbound", stdout=output, skip_checks=True)
    assert output.getvalue() == ""
