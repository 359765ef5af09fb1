"""DANE with a zone that Knot DNS signs and Unbound validates: downgrades, wrong certificates and forged answers."""

import asyncio
import hashlib
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, SessionTls, TlsPolicyKind
from core.delivery.receivers_file import built_in_receivers
from core.delivery.transports.direct import DirectTransport
from core.delivery.transports.smtp.mx import MxLookup
from core.delivery.transports.tls_policies.dane import DaneLookup
from core.delivery.transports.tls_policies.policies import TlsPolicies
from core.delivery.transports.tls_policies.sts_lookups import StsFinding, StsLookup, StsPolicies, StsState
from core.lib.network.address_guard import Guard
from core.lib.network.resolver import Resolver
from core.lib.network.target_urls import UrlRules
from tests.core.delivery.local_pairs import LocalPairs
from tests.core.delivery.relaying import SHORT, run
from tests.core.delivery.scripted import ScriptedServer, StubLease, outgoing_message
from tests.rows import each
from tests.standards.signed_zone import signed_zone

AUTHORITY = trustme.CA().create_child_ca()
ANCHORED = AUTHORITY.issue_cert("anchored.example.test")
PINNED, OTHER = trustme.CA().issue_cert("any.example"), trustme.CA().issue_cert("any.example")
GUARD = Guard(allow_private=True)
DELIVERED = DeliveryStatus.DELIVERED


def der(blob: trustme.Blob) -> bytes:
    return ssl.PEM_cert_to_DER_cert(blob.bytes().decode())


def digest(blob: trustme.Blob) -> str:
    return hashlib.sha256(der(blob)).hexdigest()


# A domain for each case, whose mail host is at an address of loopback.
RECORDS = [
    *("@ MX 10 pinned", "pinned A 127.0.0.1", f"_25._tcp.pinned TLSA 3 0 1 {digest(PINNED.cert_chain_pems[0])}"),
    *("byanchor MX 10 anchored", "anchored A 127.0.0.1", f"_25._tcp.anchored TLSA 2 0 1 {digest(AUTHORITY.cert_pem)}"),
    *("plain MX 10 unprotected", "unprotected A 127.0.0.1"),
    *("aliased MX 10 alias", "alias CNAME target", "target A 127.0.0.1"),
    f"_25._tcp.target TLSA 3 0 1 {digest(PINNED.cert_chain_pems[0])}",
    *("original MX 10 alias2", "alias2 CNAME target2", "target2 A 127.0.0.1"),
    f"_25._tcp.alias2 TLSA 3 0 1 {digest(PINNED.cert_chain_pems[0])}",
    "outside MX 10 mx.unsigned.test.",
]
UNSIGNED = [
    *("@ MX 10 mx", "mx A 127.0.0.1", f"_25._tcp.mx TLSA 3 0 1 {'00' * 32}"),
]


class NoStore:
    """No MTA-STS policies: none of these domains has one."""

    async def read(self, domain: str) -> StsState | None:
        return StsState()

    async def save(self, domain: str, finding: StsFinding) -> StsState:
        return StsState()


@pytest.fixture(scope="module")
def resolver(tmp_path_factory) -> Iterator[tuple[str, int]]:
    directory: Path = tmp_path_factory.mktemp("zone")
    with signed_zone(directory, signed=("example.test", RECORDS), unsigned=("unsigned.test", UNSIGNED)) as address:
        yield address


def deliver(address: tuple[str, int], domain: str, certificate: trustme.LeafCert | None) -> DeliveryOutcome:
    """Deliver a message to a domain whose mail host has a certificate, or no TLS."""

    async def work() -> DeliveryOutcome:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if certificate else None
        if certificate and context:
            certificate.configure_cert(context)
        resolver = Resolver([address], is_validating=True)
        policies = TlsPolicies(StsPolicies(StsLookup(resolver, UrlRules(guard=GUARD)), NoStore()), DaneLookup(resolver))
        async with ScriptedServer(tls=context) as host:
            transport = DirectTransport(
                MxLookup(resolver, GUARD),
                ehlo_name="me.example.net",
                port=host.port,
                timeouts=SHORT,
                receivers=built_in_receivers(),
                paces=LocalPairs(time.monotonic).shares(),
                policies=policies,
            )
            outcome = await transport.deliver(outgoing_message(recipient=f"ada@{domain}"), lease=StubLease())
            transport.close()
            await asyncio.sleep(0)
            assert bool(host.messages) is (outcome.status is DELIVERED)
            return outcome

    return run(work())


@each(("domain", "certificate"), [
    ("example.test", PINNED),
    ("byanchor.example.test", ANCHORED),
    ("aliased.example.test", PINNED),
    ("original.example.test", PINNED),
])  # fmt: skip
def test_a_host_that_matches_its_records_gets_the_message(resolver, domain, certificate):
    outcome = deliver(resolver, domain, certificate)
    assert (outcome.status, outcome.tls) == (DELIVERED, SessionTls("TLSv1.3", TlsPolicyKind.DANE, verified=True))


@each(("domain", "certificate"), [
    ("example.test", OTHER),
    ("example.test", None),
    ("byanchor.example.test", PINNED),
    ("byanchor.example.test", AUTHORITY.issue_cert("elsewhere.example")),
    ("byanchor.example.test", None),
    ("aliased.example.test", OTHER),
    ("original.example.test", OTHER),
])  # fmt: skip
def test_any_other_host_gets_nothing(resolver, domain, certificate):
    outcome = deliver(resolver, domain, certificate)
    assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.TLS)
    assert "DANE records (TLSA)" in outcome.reply.text


@each("domain", ["plain.example.test", "outside.example.test", "unsigned.test"])
def test_a_domain_without_signed_records_gets_its_messages_as_before(resolver, domain):
    outcome = deliver(resolver, domain, OTHER)
    assert (outcome.status, outcome.tls) == (DELIVERED, SessionTls("TLSv1.3", TlsPolicyKind.NONE, verified=False))


def test_an_answer_is_only_secure_from_a_resolver_that_validates(resolver):
    names = [("example.test", True), ("unsigned.test", False)]
    for name, is_secure in names:
        assert run(Resolver([resolver], is_validating=True).look_up(name, "MX")).is_secure is is_secure
        assert not run(Resolver([resolver]).look_up(name, "MX")).is_secure
    missing = run(Resolver([resolver], is_validating=True).look_up("missing.example.test", "A"))
    assert missing.is_secure
