"""Mail hosts that deliver to workspaces during a chaos run, and repeat what the inbound server did not acknowledge."""

import re
import smtplib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from email.message import EmailMessage
from email.policy import SMTP
from types import MappingProxyType

from tests.audit.ledger import ReceivedMessage
from tests.chaos.callers import Caller
from tests.chaos.receiving_routes import ANSWERS, FORWARDED
from tests.stack.scenario import CALL_TIMEOUT_SECONDS, Tenant, message_id_of

# Less than a frozen inbound server sleeps: it stores a message that the host has delivered elsewhere meanwhile.
REPLY_SECONDS = 5.0
SMALL, FILES, LARGE = 500, (10_000, 200_000), (1_000_000, 3_000_000)
TEXT = "Hello,\n.\n..and goodbye\n"
REPLY_TO = re.compile(rb"^Reply-To: <?(r-[^@>\s]+@[^>\s]+)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class OutgoingMail:
    """A message of a mail host. recipients: the workspaces of its addresses. answers: the email that it answers."""

    message_id: str
    sender: str
    subject: str
    source: bytes
    recipients: dict[str, str]
    answers: str = ""
    is_forwarded: bool = False


@dataclass
class MailHost(Caller):
    """One thread of deliveries. ports: those of the inbound servers; like the hosts of an MX record, each is good."""

    ports: tuple[int, ...] = ()
    # Emails whose recipients can answer, with their addresses.
    answerable: list[tuple[str, str]] = field(default_factory=list)

    def actions(self) -> list[tuple[Callable[[], None], int]]:
        return [
            (self.deliver_small, 10), (self.deliver_file, 6), (self.deliver_large, 1), (self.deliver_to_several, 3),
            (self.deliver_to_both, 3), (self.lose_reply, 4), (self.break_off, 3), (self.repeat, 3),
            (self.deliver_forwarded, 3), (self.send_answerable, 2), (self.answer, 2), (self.answer_to_route, 2),
        ]  # fmt: skip

    def deliver_small(self) -> None:
        self._deliver(self._mail(self.tenant, size=SMALL))

    def deliver_file(self) -> None:
        self._deliver(self._mail(self.tenant, size=self.random.randint(*FILES)))

    def deliver_large(self) -> None:
        self._deliver(self._mail(self.tenant, size=self.random.randint(*LARGE)))

    def deliver_to_several(self) -> None:
        self._deliver(self._mail(*[self.tenant] * self.random.randint(2, 10), size=SMALL))

    def deliver_to_both(self) -> None:
        """Deliver one message to two workspaces, neither of which sees the address of the other."""
        self._deliver(self._mail(*self.scenario.tenants, size=SMALL))

    def deliver_forwarded(self) -> None:
        """Deliver to an address whose route forwards."""
        tenant = self.tenant
        address = f"{FORWARDED}+{next(self.scenario.numbers)}@{tenant.domain}"
        mail = self._build([tenant], {address: tenant.id}, sender="ada@example.com", size=SMALL)
        self._deliver(replace(mail, is_forwarded=True))

    def lose_reply(self) -> None:
        """Close the connection after the final dot, as when the reply is lost; then deliver again."""
        mail = self._mail(self.tenant, size=self.random.randint(*FILES))
        with suppress(OSError, smtplib.SMTPException):
            self._send_and_leave(mail, _framed(mail.source))
        self._deliver(mail)

    def break_off(self) -> None:
        """Close the connection in the middle of a message; then deliver it."""
        mail = self._mail(self.tenant, size=self.random.randint(*FILES))
        with suppress(OSError, smtplib.SMTPException):
            self._send_and_leave(mail, _framed(mail.source)[: self.random.randrange(len(mail.source))])
        self._deliver(mail)

    def repeat(self) -> None:
        """Deliver a message that was acknowledged, as a host does that was restored from a backup."""
        mail = self._mail(self.tenant, size=SMALL)
        self._deliver(mail)
        self._deliver(mail)

    def send_answerable(self) -> None:
        tenant, address = self.tenant, self.scenario.address()
        body = {
            "from": f"hello@{tenant.domain}",
            "to": address,
            "subject": f"About {tenant.marker}",
            "text": tenant.marker,
            "replyTracking": True,
        }
        if sent := self.scenario.accept(tenant, "/emails/send", body, (address,)):
            self.answerable.append((sent.email_id, address))

    def answer(self) -> None:
        """Answer an email that has arrived, once, to its reply address."""
        if taken := self._take_arrived():
            email_id, message, tenant = taken
            found = REPLY_TO.search(message.source)
            assert found, f"{message.recipient} received a message without a reply address"
            self._answer(email_id, message, tenant, to=found[1].decode())

    def answer_to_route(self) -> None:
        """Answer an email that has arrived, once, to an address whose route takes nothing but answers."""
        if taken := self._take_arrived():
            email_id, message, tenant = taken
            self._answer(email_id, message, tenant, to=f"{ANSWERS}+{next(self.scenario.numbers)}@{tenant.domain}")

    def _take_arrived(self) -> tuple[str, ReceivedMessage, Tenant] | None:
        """Return the first email that has arrived and was not answered, and its workspace."""
        messages = {message.recipient: message for message in list(self.scenario.ledger.messages)}
        for email_id, address in self.answerable:
            if message := messages.get(address):
                self.answerable.remove((email_id, address))
                owner = next(one.workspace for one in list(self.scenario.ledger.accepted) if one.email_id == email_id)
                return email_id, message, next(tenant for tenant in self.scenario.tenants if tenant.id == owner)
        return None

    def _answer(self, email_id: str, message: ReceivedMessage, tenant: Tenant, *, to: str) -> None:
        fields = {"In-Reply-To": f"<{message_id_of(message)}@{tenant.domain}>"}
        mail = self._build([tenant], {to: tenant.id}, sender=message.recipient, size=SMALL, fields=fields)
        self._deliver(replace(mail, answers=email_id))

    def _mail(self, *tenants: Tenant, size: int) -> OutgoingMail:
        recipients = {}
        for tenant in tenants:
            local, _, domain = tenant.address.partition("@")
            # A tag with the marker of the workspace: another one must not see it.
            recipients[f"{local}+{tenant.marker}{next(self.scenario.numbers)}@{domain}"] = tenant.id
        return self._build(tenants, recipients, sender="ada@example.com", size=size)

    def _build(
        self, tenants: Sequence[Tenant], recipients: dict[str, str], *, sender: str, size: int,
        fields: Mapping[str, str] = MappingProxyType({}),
    ) -> OutgoingMail:  # fmt: skip
        message = EmailMessage(policy=SMTP)
        message_id = f"<{next(self.scenario.numbers)}@host.example>"
        markers = {tenant.marker for tenant in tenants}
        message["From"], message["Message-ID"] = sender, message_id
        message["Subject"] = subject = markers.pop() if len(markers) == 1 else "To both"
        for name, value in fields.items():
            message[name] = value
        message.set_content(TEXT)
        if size > SMALL:
            message.add_attachment(self.random.randbytes(size), maintype="application", subtype="pdf", filename="a.pdf")
        return OutgoingMail(message_id, sender, subject, message.as_bytes(), recipients)

    def _deliver(self, mail: OutgoingMail) -> None:
        """Deliver to each recipient until it is acknowledged."""
        remaining = dict(mail.recipients)
        deadline = time.monotonic() + CALL_TIMEOUT_SECONDS
        while remaining:
            accepted: dict[str, str] = {}
            with suppress(OSError, smtplib.SMTPException):
                accepted = self._transact(mail, remaining)
            self.scenario.ledger.record_received(
                mail.source, message_id=mail.message_id, recipients=accepted, sender=mail.sender, subject=mail.subject,
                text=TEXT, answers=mail.answers, is_forwarded=mail.is_forwarded,
            )  # fmt: skip
            remaining = {address: owner for address, owner in remaining.items() if address not in accepted}
            if remaining:
                self.done["deliveries without a 250"] += 1
                assert time.monotonic() < deadline, f"{mail.message_id} was never accepted"
                time.sleep(self.random.uniform(0.05, 0.5))

    def _transact(self, mail: OutgoingMail, recipients: dict[str, str]) -> dict[str, str]:
        """Return the recipients for which the message was acknowledged."""
        with closing(self._connect()) as client:
            accepted = self._begin(client, mail, recipients)
            code, text = client.data(mail.source) if accepted else (450, b"")
            assert code < 500, f"a message was permanently refused: {code} {text!r}"
            return accepted if code == 250 else {}

    def _send_and_leave(self, mail: OutgoingMail, data: bytes) -> None:
        """Send bytes after DATA, and close the connection without reading a reply."""
        with closing(self._connect()) as client:
            if self._begin(client, mail, mail.recipients) and client.docmd("DATA")[0] == 354:
                client.send(data)

    def _begin(self, client: smtplib.SMTP, mail: OutgoingMail, recipients: dict[str, str]) -> dict[str, str]:
        client.ehlo("mx.host.example")
        assert client.mail(mail.sender, [f"SIZE={len(mail.source)}"])[0] < 500
        accepted = {}
        for address, owner in recipients.items():
            code, text = client.rcpt(address)
            assert code < 500, f"{address} was permanently refused: {code} {text!r}"
            if code == 250:
                accepted[address] = owner
        return accepted

    def _connect(self) -> smtplib.SMTP:
        # Connects from many networks, each of which may send some messages an hour.
        network = ".".join(str(self.random.randint(1, 254)) for _ in range(3))
        return smtplib.SMTP(
            "127.0.0.1", self.random.choice(self.ports), timeout=REPLY_SECONDS, source_address=(f"127.{network}", 0)
        )


def _framed(source: bytes) -> bytes:
    """Return a message as it is sent after DATA (RFC 5321, section 4.5.2)."""
    return source.replace(b"\r\n.", b"\r\n..") + b".\r\n"
