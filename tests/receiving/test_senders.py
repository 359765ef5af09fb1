"""Real mail servers and programs deliver to the inbound server; each message is compared with the one that arrives."""

import json
import os
import random
import smtplib
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.policy import SMTPUTF8
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.audit.ledger import Ledger
from tests.audit.sink import mail_sink
from tests.stack.stack import Stack, running_stack, wait_for
from tests.standards.exim import Exim
from tests.standards.postfix import Postfix
from tests.standards.tools import npm_modules, program, swaks

pytestmark = [pytest.mark.stack, pytest.mark.xdist_group("receiving-senders")]

SENDER = "ada@sender.example"
TO = "support@demo.example"
MAX_BYTES = 1024 * 1024
FILE = random.Random(36).randbytes(300_000)
TOO_LARGE = b"x" * 1_200_000
NODEMAILER = "nodemailer@7.0.3"
SCRIPT = Path(__file__).parent / "programs" / "nodemailer.js"
RECEIVE = """
from domains.models import Domain, ReceivingDomain
from django.utils import timezone
domain = Domain.objects.get(name="demo.example")
ReceivingDomain.objects.update_or_create(
    domain=domain,
    defaults={"workspace": domain.workspace, "name": domain.name, "status": "active", "proven_at": timezone.now()},
)
"""


@contextmanager
def required() -> Iterator[None]:
    """A program that is missing fails a test here: without it nothing proves that real senders can deliver."""
    try:
        yield
    except pytest.skip.Exception as reason:
        pytest.fail(str(reason))


@pytest.fixture(scope="module")
def stack(tmp_path_factory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("senders")
    issued = trustme.CA().issue_cert("localhost", "127.0.0.1")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    issued.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    tls = {"INBOUND_TLS_CERT": str(folder / "cert.pem"), "INBOUND_TLS_KEY": str(folder / "key.pem")}
    with running_stack(folder, RECEIVING_MAX_BYTES=str(MAX_BYTES), WEB_CONCURRENCY="1", **tls) as stack:
        stack.start("web", "inbound", "worker")
        stack.manage("shell", "--verbosity", "0", "-c", RECEIVE)
        for pattern in ("support*", "grüße"):
            route = {"name": pattern, "domain": "demo.example", "match": pattern}
            assert stack.call("POST", "/inbound/routes", route).status == 201
        yield stack


@dataclass
class MailServer:
    """A mail server that delivers to the stack. bounces: the messages that return to its senders."""

    name: str
    port: int
    bounces: Ledger

    def bounce_to(self, address: str) -> bytes:
        wait_for(lambda: self._bounces(address), seconds=60, what=f"a bounce by {self.name}")
        (bounce,) = self._bounces(address)
        return bounce

    def _bounces(self, address: str) -> list[bytes]:
        return [message.source for message in self.bounces.messages if message.recipient == address]


@pytest.fixture(scope="module", params=["postfix", "exim"])
def server(request, stack) -> Iterator[MailServer]:
    bounces, inbound = Ledger(), port_of(stack)
    settings = {
        "smtp_tls_security_level": "encrypt",
        # Postfix would bounce a large message by itself. Exim announces its size; Postfix now sends it.
        "smtp_discard_ehlo_keywords": "size",
        # UTF-8 in the header, for SMTPUTF8.
        "strict_7bit_headers": "no",
    }
    with required(), mail_sink(bounces) as sink:
        routes = {"demo.example": inbound, "*": sink}
        # The sink offers no TLS; it gets the bounces.
        policy = {"smtp_tls_policy_maps": f"inline:{{ {{ [127.0.0.1]:{sink} = none }} }}"}
        running = (
            Postfix(routes=routes, settings=settings | policy) if request.param == "postfix" else Exim(routes=routes)
        )
        with running:
            yield MailServer(request.param, running.port, bounces)


def port_of(stack: Stack) -> int:
    return int(stack.environment["INBOUND_PORT"])


def received(stack: Stack, subject: str) -> dict[str, Any]:
    """Wait for the only received email with a subject, and return it with its content."""

    def find() -> list[dict[str, Any]]:
        emails = stack.call("GET", f"/inbound/emails?subject={urllib.request.quote(subject)}").body["data"]
        return [email for email in emails if email["status"] != "stored"]

    (email,) = wait_for(find, seconds=60, what=f"the email {subject}")
    assert email["status"] == "processed"
    return stack.call("GET", f"/inbound/emails/{email['id']}").body


def source_of(stack: Stack, email: dict[str, Any]) -> bytes:
    request = urllib.request.Request(f"{stack.url}/v1/inbound/emails/{email['id']}/raw")
    request.add_header("Authorization", f"Bearer {stack.key}")
    return download(request)


def download(request: urllib.request.Request | str) -> bytes:
    with urllib.request.urlopen(request, timeout=30) as response:
        return bytes(response.read())


def count_received(stack: Stack, subject: str) -> int:
    return len(stack.call("GET", f"/inbound/emails?subject={urllib.request.quote(subject)}").body["data"])


def build_message(subject: str, *, sender: str = SENDER, to: str = TO, text: str = "Hello\n") -> EmailMessage:
    message = EmailMessage(policy=SMTP_POLICY)
    message["From"], message["To"], message["Subject"] = sender, to, subject
    message.set_content(text)
    return message


def submit(
    server: MailServer, source: bytes, *, sender: str = SENDER, to: str = TO, options: tuple[str, ...] = ()
) -> None:
    with smtplib.SMTP("127.0.0.1", server.port, timeout=30) as client:
        client.ehlo("app.example")
        assert client.sendmail(sender, [to], source, mail_options=options) == {}


class TestMailServers:
    def test_files_arrive_byte_for_byte_over_tls(self, stack, server):
        subject = f"Files by {server.name}"
        message = build_message(subject, text="Grüße\n.dot\n\n.\n")
        message.add_attachment(FILE, maintype="application", subtype="pdf", filename="Übersicht.pdf")
        message.add_attachment(b"", maintype="text", subtype="csv", filename="empty.csv")
        submit(server, message.as_bytes())
        email = received(stack, subject)
        assert email["text"] == "Grüße\n.dot\n\n.\n"
        assert [(file["filename"], file["size"]) for file in email["attachments"]] == [
            ("Übersicht.pdf", len(FILE)),
            ("empty.csv", 0),
        ]
        assert download(email["attachments"][0]["url"]) == FILE
        assert (email["envelopeFrom"], email["recipient"]) == (SENDER, TO)
        assert (email["remote"]["helo"], email["remote"]["tls"]) == (f"{server.name}.example", "TLSv1.3")
        # The server's own Received field is below ours.
        source = source_of(stack, email)
        assert source.startswith(f"Received: from {server.name}.example ([127.0.0.1])\r\n\tby ".encode())
        assert [name.lower() for name, _ in email["headers"]].count("received") == 1

    def test_8_bit_content_arrives_unchanged(self, stack, server):
        subject = f"8 bits by {server.name}"
        head = f"From: {SENDER}\r\nTo: {TO}\r\nSubject: {subject}\r\nMIME-Version: 1.0\r\n"
        kind = "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
        body = "Grüße 🎉\r\n.dot\r\n"
        submit(server, f"{head}{kind}{body}".encode(), options=("BODY=8BITMIME",))
        email = received(stack, subject)
        assert email["text"] == "Grüße 🎉\n.dot\n"
        assert source_of(stack, email).endswith(b"\r\n\r\n" + body.encode())

    def test_an_smtputf8_message_arrives(self, stack, server):
        subject, sender = f"Grüße by {server.name}", "zoë@sender.example"
        message = build_message(subject, sender=sender, to="grüße@demo.example")
        source = message.as_bytes(policy=SMTPUTF8)
        assert f"Subject: {subject}".encode() in source
        submit(server, source, sender=sender, to="grüße@demo.example", options=("SMTPUTF8", "BODY=8BITMIME"))
        email = received(stack, subject)
        assert (email["recipient"], email["envelopeFrom"]) == ("grüße@demo.example", sender)
        assert email["from"] == {"email": sender, "name": ""}

    def test_a_message_that_is_too_large_returns_to_its_sender(self, stack, server):
        subject, sender = f"Large by {server.name}", "large@sender.example"
        message = build_message(subject, sender=sender)
        message.add_attachment(TOO_LARGE, maintype="application", subtype="zip", filename="a.zip")
        submit(server, message.as_bytes(), sender=sender)
        assert b"552 5.3.4 " in server.bounce_to(sender)
        assert count_received(stack, subject) == 0

    def test_an_unknown_recipient_returns_to_its_sender(self, stack, server):
        subject, sender, to = f"Unknown by {server.name}", "unknown@sender.example", "nobody@demo.example"
        submit(server, build_message(subject, sender=sender, to=to).as_bytes(), sender=sender, to=to)
        assert b"550 5.1.1" in server.bounce_to(sender)
        assert count_received(stack, subject) == 0

    def test_one_message_to_many_recipients_is_stored_once(self, stack, server):
        subject = f"Many by {server.name}"
        addresses = [f"support+{number}@demo.example" for number in range(60)]
        with smtplib.SMTP("127.0.0.1", server.port, timeout=30) as client:
            client.sendmail(SENDER, addresses, build_message(subject).as_bytes())
        wait_for(
            lambda: stack.query("SELECT count(*) FROM receiving_receivedemail WHERE subject = %s", subject) == [(60,)],
            seconds=60,
            what="all recipients, those after the fiftieth in a second transaction",
        )
        rows = "SELECT count(*), count(DISTINCT sha256) FROM receiving_message WHERE subject = %s"
        assert stack.query(rows, subject) in ([(2, 2)], [(2, 1)])


class TestSwaks:
    def run(self, stack: Stack, *arguments: str) -> tuple[int, str]:
        with required():
            path = swaks()
        server = ("--server", f"127.0.0.1:{port_of(stack)}", "--helo", "swaks.example", "--from", SENDER)
        done = subprocess.run([path, *server, *arguments], capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr

    @pytest.mark.parametrize("tls", ["--tls", ""])
    def test_a_file_arrives_with_and_without_tls(self, stack, tmp_path, tls):
        subject = "By swaks over TLS" if tls else "By swaks in clear"
        (tmp_path / "a.bin").write_bytes(FILE)
        options = [tls] if tls else []
        code, output = self.run(
            stack, "--to", TO, *options, "--header", f"Subject: {subject}", "--attach", f"@{tmp_path / 'a.bin'}"
        )
        assert code == 0, output
        email = received(stack, subject)
        assert f"250 2.6.0 <{email['id']}> Stored" in output
        assert download(email["attachments"][0]["url"]) == FILE
        assert email["remote"]["tls"] == ("TLSv1.3" if tls else None)

    def test_an_unknown_recipient_is_550(self, stack):
        code, output = self.run(stack, "--to", "nobody@demo.example")
        # 24: no recipient was accepted.
        assert (code, "<** 550 5.1.1 " in output) == (24, True), output

    def test_a_message_that_is_too_large_is_552(self, stack, tmp_path):
        (tmp_path / "a.bin").write_bytes(TOO_LARGE)
        code, output = self.run(stack, "--to", TO, "--attach", f"@{tmp_path / 'a.bin'}")
        # 26: the message was refused after DATA.
        assert (code, "552 5.3.4 Message too large" in output) == (26, True), output[-500:]


def test_nodemailer_delivers_over_tls(stack):
    with required():
        node, modules = program("node", package="nodejs"), str(npm_modules(NODEMAILER))
    names = ("files", "utf8", "large", "unknown")
    environment = {**os.environ, "NODE_PATH": modules}
    done = subprocess.run(
        [node, str(SCRIPT), str(port_of(stack)), *names],
        input=FILE, capture_output=True, timeout=60, check=True, env=environment,
    )  # fmt: skip
    replies = dict(zip(names, done.stdout.decode().splitlines(), strict=True))
    files = received(stack, "Files by nodemailer")
    assert replies["files"] == f"250 2.6.0 <{files['id']}> Stored"
    assert (files["text"], files["html"]) == ("Grüße 🎉\n.dot\n", "<p>Grüße</p>")
    (file,) = files["attachments"]
    assert (file["filename"], download(file["url"])) == ("Übersicht.pdf", FILE)
    assert (files["remote"]["helo"], files["remote"]["tls"]) == ("nodemailer.example", "TLSv1.3")
    assert received(stack, "UTF-8 by nodemailer")["recipient"] == "grüße@demo.example"
    assert replies["large"].startswith("EMESSAGE 552 5.3.4"), json.dumps(replies)
    assert replies["unknown"].startswith("EENVELOPE 550 5.1.1"), json.dumps(replies)
