"""The inbox over real SMTP: accepts every message, stores it before its 250, and assigns it to a workspace."""

import smtplib
import socket

import pytest

from emails.models import Recipient
from interfaces.inbound.inbox.models import CaughtMail
from interfaces.inbound.inbox.server import serve
from tests.conftest import make_account, make_domain
from tests.emails.builders import accept
from tests.interfaces.inbound.fixtures import is_open, run_in_thread
from tests.rows import each
from tests.stack.stack import free_port, wait_for

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def port():
    number = free_port()
    with run_in_thread(serve(number)):
        wait_for(lambda: is_open(number), seconds=60, what="the inbox listens")
        yield number


def send(port, source, *recipients, sender="a@b.example"):
    with smtplib.SMTP("127.0.0.1", port) as client:
        return client.sendmail(sender, recipients or ["ada@example.com"], source)


def test_a_message_is_stored_byte_for_byte_for_each_recipient(port):
    source = b"Subject: =?utf-8?b?w5xtbGF1dA==?=\r\nFrom: Ada <a@b.example>\r\n\r\n..dot\r\nend\r\n"
    send(port, source, "x@example.com", "y@example.com")
    assert [bytes(mail.source) for mail in CaughtMail.objects.all()] == [source, source]
    mail = CaughtMail.objects.get(recipient="x@example.com")
    assert (mail.subject, mail.sender, mail.envelope_from) == ("Ümlaut", "Ada <a@b.example>", "a@b.example")
    assert mail.workspace_id is None


def test_an_internationalized_recipient_is_accepted(port):
    source = "To: 用户@example.com\r\n\r\nHi\r\n".encode()
    with smtplib.SMTP("127.0.0.1", port) as client:
        client.sendmail("a@b.example", ["用户@example.com"], source, mail_options=["SMTPUTF8", "BODY=8BITMIME"])
    mail = CaughtMail.objects.get()
    assert (mail.recipient, bytes(mail.source)) == ("用户@example.com", source)


def test_a_message_to_a_recipient_belongs_to_its_workspace(port):
    workspace = make_account("alice").workspace
    make_domain(workspace, "alice.example")
    accept(workspace, "ada@example.com")
    recipient = Recipient.objects.get()
    source = f"Message-ID: <{recipient.id}@alice.example>\r\n\r\nHi\r\n".encode()
    send(port, source, "ada@example.com", "eve@example.com")
    assert CaughtMail.objects.get(recipient="ada@example.com").workspace_id == workspace.id
    assert CaughtMail.objects.get(recipient="eve@example.com").workspace_id is None


@each("source", [
    b"\r\n", b"no headers at all\r\n", b"From: " + b"(" * 900 + b"\r\n\r\n",
    b"Subject: a\x00b\r\nMessage-ID: <\xff\xfe>\r\n\r\n\x00\xff",
    b"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n", b"Subject: " + b"x" * 900 + b"\r\n\r\n",
])  # fmt: skip
def test_a_hostile_message_is_stored(port, source):
    CaughtMail.objects.all().delete()
    send(port, source)
    assert CaughtMail.objects.count() == 1


def test_a_message_that_cannot_be_stored_is_451(port):
    # Longer than the column, which SMTP's own limit does not prevent: a limit of 512 characters applies to the line.
    with pytest.raises(smtplib.SMTPDataError, match="451"):
        send(port, b"Subject: x\r\n\r\n", f"{'x' * 400}@example.com")
    send(port, b"Subject: y\r\n\r\n")
    assert CaughtMail.objects.get().subject == "y"


def test_a_client_need_not_wait_for_each_reply(port):
    with socket.create_connection(("127.0.0.1", port)) as client, client.makefile("rb") as replies:
        client.sendall(b"EHLO a.example\r\n")
        greeting = [replies.readline()]
        while not greeting[-1].startswith(b"250 "):
            greeting.append(replies.readline())
        assert b"250-PIPELINING\r\n" in greeting
        client.sendall(b"MAIL FROM:<a@b.example>\r\nRCPT TO:<x@example.com>\r\nRCPT TO:<y@example.com>\r\nDATA\r\n")
        assert [replies.readline()[:3] for _ in range(4)] == [b"250", b"250", b"250", b"354"]
        client.sendall(b"Subject: z\r\n\r\n.\r\n")
        assert replies.readline().startswith(b"250")
    assert {mail.recipient for mail in CaughtMail.objects.all()} == {"x@example.com", "y@example.com"}
