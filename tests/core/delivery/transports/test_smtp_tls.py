"""TLS and logins (F26, RFC 3207, RFC 4954): no password in plaintext, no injected replies."""

import asyncio
import ssl
from base64 import b64decode
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trustme

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus
from core.delivery.message.compose import OutgoingMessage
from core.delivery.transports.smtp.login import MECHANISMS, Login
from core.delivery.transports.smtp.tls import TlsMode, opportunistic_context, verifying_context
from tests.core.delivery.relaying import MESSAGE, awaited, relay, run
from tests.core.delivery.scripted import ScriptedServer, StubLease, outgoing_message
from tests.rows import each

LEASE = StubLease()
LOGIN = Login("user", "pässword")


@dataclass
class Authority:
    ca: trustme.CA = field(default_factory=trustme.CA)

    def serving(self, *names: str, **options: Any) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert(*names, **options).configure_cert(context)
        return context

    @property
    def trusting(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.ca.configure_trust(context)
        return context


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def certificate(kind: str, authority: Authority) -> ssl.SSLContext:
    match kind:
        case "good":
            return authority.serving("127.0.0.1")
        case "expired":
            return authority.serving("127.0.0.1", not_after=datetime.now(UTC) - timedelta(days=1))
        case "wrong host":
            return authority.serving("other.example")
        case "self-signed":
            return Authority().serving("127.0.0.1")
        case _:
            return unwilling()


def unwilling() -> ssl.SSLContext:
    """Return the context of a server without a certificate: every handshake fails."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


def deliver(server: ScriptedServer, **options: Any) -> DeliveryOutcome:
    return deliver_message(server, MESSAGE, **options)


def deliver_message(server: ScriptedServer, message: OutgoingMessage, **options: Any) -> DeliveryOutcome:
    async def work() -> DeliveryOutcome:
        async with server:
            return await relay(server, **options).deliver(message, lease=LEASE)

    return run(work())


@pytest.mark.parametrize("implicit", [False, True], ids=["STARTTLS", "implicit"])
class TestRequired:
    @each("kind", ["expired", "wrong host", "self-signed", "no handshake"])
    def test_an_invalid_certificate_stops_the_delivery(self, kind, implicit, authority):
        server = ScriptedServer(tls=certificate(kind, authority), implicit=implicit)
        tls = TlsMode.IMPLICIT if implicit else TlsMode.REQUIRED
        outcome = deliver(server, tls=tls, context=authority.trusting, login=LOGIN)
        # On a port with implicit TLS, a host that disconnects in the handshake looks like any lost connection.
        is_disconnect = implicit and kind == "no handshake"
        assert outcome.status is DeliveryStatus.DEFERRED
        assert outcome.reason in ((FailureReason.TLS, FailureReason.NETWORK) if is_disconnect else (FailureReason.TLS,))
        assert server.connections <= 1, "there must be no second attempt in plaintext"
        assert server.said("AUTH") == server.said("MAIL") == []

    def test_a_valid_certificate_allows_the_delivery(self, implicit, authority):
        server = ScriptedServer(tls=certificate("good", authority), implicit=implicit)
        outcome = deliver(server, tls=TlsMode.IMPLICIT if implicit else TlsMode.REQUIRED, context=authority.trusting)
        assert outcome.status is DeliveryStatus.SENT
        assert len(server.said("EHLO")) == (1 if implicit else 2), "EHLO is repeated after STARTTLS"


def test_a_host_without_tls_gets_nothing_when_tls_is_required():
    server = ScriptedServer()
    outcome = deliver(server, tls=TlsMode.REQUIRED, login=LOGIN)
    assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.TLS)
    assert server.said("AUTH") == server.said("MAIL") == []


def test_a_plaintext_port_fails_with_implicit_tls():
    outcome = deliver(ScriptedServer(), tls=TlsMode.IMPLICIT)
    assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.TLS)


class TestOpportunistic:
    @each("kind", ["good", "expired", "wrong host", "self-signed"])
    def test_any_certificate_is_accepted(self, kind, authority):
        server = ScriptedServer(tls=certificate(kind, authority))
        assert deliver(server, tls=TlsMode.OPPORTUNISTIC).status is DeliveryStatus.SENT
        assert (server.connections, len(server.said("STARTTLS"))) == (1, 1)

    @awaited
    async def test_a_failed_handshake_is_retried_in_plaintext_and_remembered(self):
        async with ScriptedServer(tls=unwilling(), script={"quit": b"221 Bye\r\n"}) as server:
            transport = relay(server, tls=TlsMode.OPPORTUNISTIC)
            assert (await transport.deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.SENT
            assert (server.connections, len(server.said("STARTTLS"))) == (2, 1)
            transport._destination.take_session().close()
            assert (await transport.deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.SENT
            assert (server.connections, len(server.said("STARTTLS"))) == (3, 1)

    @each("reply", [b"454 4.7.0 Not now\r\n", b"500 What?\r\n"])
    def test_a_refused_starttls_continues_in_plaintext(self, reply, authority):
        server = ScriptedServer({"starttls": reply}, tls=certificate("good", authority))
        assert deliver(server, tls=TlsMode.OPPORTUNISTIC).status is DeliveryStatus.SENT
        assert server.connections == 1

    def test_text_before_the_handshake_ends_the_session(self, authority):
        """CVE-2011-0411: a reply injected in plaintext must not be read as one sent over TLS."""

        async def inject(visit):
            await visit.say(b"220 Go\r\n250 2.0.0 All is well\r\n")
            await asyncio.sleep(1)

        server = ScriptedServer({"starttls": inject}, tls=certificate("good", authority))
        outcome = deliver(server, tls=TlsMode.OPPORTUNISTIC)
        assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.PROTOCOL)
        assert server.connections == 1

    def test_the_host_name_is_sent_as_sni(self, authority):
        names = []
        context = authority.serving("localhost")
        context.sni_callback = lambda _, name, __: names.append(name)
        server = ScriptedServer(tls=context)
        deliver(server, tls=TlsMode.OPPORTUNISTIC, host="localhost")
        assert names == ["localhost"]


class TestVersions:
    @each("make", [verifying_context, opportunistic_context])
    def test_nothing_below_tls_1_2(self, make):
        assert make().minimum_version is ssl.TLSVersion.TLSv1_2
        assert make() is make(), "there is one context per process"


class TestLogin:
    @each("mechanism", ["PLAIN", "LOGIN", "CRAM-MD5"])
    def test_each_mechanism_sends_its_responses(self, mechanism, authority):
        server = ScriptedServer(tls=certificate("good", authority), secure_extensions=(f"AUTH {mechanism} XOAUTH2",))
        outcome = deliver(server, tls=TlsMode.REQUIRED, context=authority.trusting, login=LOGIN)
        assert outcome.status is DeliveryStatus.SENT
        at = next(number for number, line in enumerate(server.commands) if line.startswith(b"AUTH"))
        said = [b64decode(line).decode() for line in server.commands[at + 1 : at + 3] if not line.startswith(b"MAIL")]
        wanted = {"PLAIN": ["\0user\0pässword"], "LOGIN": ["user", "pässword"], "CRAM-MD5": [said[0]]}
        assert said == wanted[mechanism]
        assert said[0].lstrip("\0").startswith("user")

    def test_the_digest_matches_the_standard(self):
        """The example of RFC 2195, section 2."""
        (say,) = MECHANISMS["CRAM-MD5"]
        said = say(Login("tim", "tanstaaftanstaaf"), b"<1896.697170952@postoffice.reston.mci.net>")
        assert said == b"tim b913a602c7eda7a495b4e6e7334d3890"

    def test_no_password_is_sent_without_tls(self):
        """A second safeguard: smtp_url already refuses such settings."""
        for tls in (TlsMode.NONE, TlsMode.OPPORTUNISTIC):
            server = ScriptedServer(extensions=("AUTH PLAIN",))
            outcome = deliver(server, tls=tls, login=LOGIN)
            assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.TLS)
            assert server.said("AUTH") == []

    def test_a_host_without_a_supported_mechanism_refuses_the_login(self, authority):
        server = ScriptedServer(tls=certificate("good", authority), secure_extensions=("AUTH GSSAPI",))
        outcome = deliver(server, tls=TlsMode.REQUIRED, context=authority.trusting, login=LOGIN)
        assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.LOGIN_REFUSED)

    @awaited
    async def test_three_refusals_in_a_row_pause_the_transport(self, authority):
        async def after_all(visit):
            await visit.say(b"334 \r\n")
            await visit.reader.readline()
            await visit.say(b"235 Welcome\r\n")

        refusal = b"535 5.7.8 Wrong password\r\n"
        script = {"auth": [refusal, refusal, refusal, after_all]}
        async with ScriptedServer(
            script, tls=certificate("good", authority), secure_extensions=("AUTH PLAIN",)
        ) as server:
            transport = relay(server, tls=TlsMode.REQUIRED, context=authority.trusting, login=LOGIN)
            for number in range(3):
                assert transport.trouble is None, number
                outcome = await transport.deliver(MESSAGE, lease=LEASE)
                assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.LOGIN_REFUSED)
            assert transport.trouble
            parked = await transport.deliver(MESSAGE, lease=LEASE)
            wanted = DeliveryStatus.PARKED, FailureReason.LOGIN_REFUSED, 3
            assert (parked.status, parked.reason, server.connections) == wanted
            transport._credentials._open_until = 0.0
            transport._destination.breaker.record_success()
            assert (await transport.deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.SENT
            assert transport.trouble is None

    @each(("reply", "reason"), [
        ("530 5.7.0 Must issue a STARTTLS command first", FailureReason.TLS),
        ("530 5.7.0 Authentication required", FailureReason.LOGIN_REFUSED),
    ])  # fmt: skip
    @awaited
    async def test_three_demands_for_a_login_or_tls_pause_the_transport(self, reply, reason):
        said = f"{reply}\r\n".encode()
        async with ScriptedServer({"mail": [said, said, said, b"250 Ok\r\n"]}) as server:
            transport = relay(server)
            for number in range(3):
                assert transport.trouble is None, number
                outcome = await transport.deliver(MESSAGE, lease=LEASE)
                assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, reason)
            assert transport.trouble is not None
            assert reply in transport.trouble
            assert (await transport.deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.PARKED
            transport._credentials._open_until = 0.0
            assert (await transport.deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.SENT
            assert transport.trouble is None

    @awaited
    async def test_a_demand_for_one_recipient_waits_and_pauses_nothing(self):
        """A relay that passes on the replies of the recipient's host must not stop the email of others."""
        async with ScriptedServer({"rcpt": b"530 5.7.1 Authentication required\r\n"}) as server:
            transport = relay(server)
            for _ in range(4):
                outcome = await transport.deliver(MESSAGE, lease=LEASE)
                assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.RELAY_DENIED)
            assert transport.trouble is None

    def test_the_password_is_not_in_the_repr(self):
        assert "pässword" not in repr(LOGIN)


class TestMessagesThatRequireTls:
    SECRET = outgoing_message(requires_tls=True)

    @awaited
    async def test_a_host_without_tls_gets_only_the_others(self):
        async with ScriptedServer() as server:
            transport = relay(server, tls=TlsMode.OPPORTUNISTIC)
            # The plaintext session of the first message is kept, and not used for the second.
            assert (await transport.deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.SENT
            outcome = await transport.deliver(self.SECRET, lease=LEASE)
            assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.TLS)
            assert outcome.reply.text.startswith("The host offers no TLS. The sending domain (tls)")
            assert len(server.messages) == 1
            transport.close()

    @each("kind", ["expired", "wrong host", "self-signed", "no handshake"])
    @awaited
    async def test_an_invalid_certificate_stops_only_them(self, kind, authority):
        async with ScriptedServer(tls=certificate(kind, authority)) as server:
            transport = relay(server, tls=TlsMode.OPPORTUNISTIC)
            for _ in range(5):
                outcome = await transport.deliver(self.SECRET, lease=LEASE)
                assert outcome.status in (DeliveryStatus.DEFERRED, DeliveryStatus.PARKED)
            assert server.said("MAIL") == []
            # Their failures do not pause the destination for the others.
            assert (await transport.deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.SENT
            transport.close()

    def test_the_error_explains_the_requirement(self, authority):
        server = ScriptedServer(tls=certificate("self-signed", authority))
        outcome = deliver_message(server, self.SECRET, tls=TlsMode.OPPORTUNISTIC)
        assert outcome.reason is FailureReason.TLS
        assert "requires TLS with a valid certificate" in outcome.reply.text

    @each("tls", [TlsMode.OPPORTUNISTIC, TlsMode.NONE])
    def test_a_valid_certificate_allows_the_delivery(self, tls, authority):
        server = ScriptedServer(tls=certificate("good", authority))
        outcome = deliver_message(server, self.SECRET, tls=tls, context=authority.trusting)
        assert outcome.status is DeliveryStatus.SENT
        assert len(server.said("STARTTLS")) == 1

    def test_the_inbox_on_this_machine_needs_none(self):
        outcome = deliver_message(ScriptedServer(), self.SECRET, tls=TlsMode.NONE, is_local=True)
        assert outcome.status is DeliveryStatus.SENT
