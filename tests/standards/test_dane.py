"""DANE with a zone that Knot DNS signs and Unbound validates: downgrades, wrong certificates and forged answers.

Postfix with the same resolver delivers to the same hosts, and to no others.
"""

import asyncio
import hashlib
import os
import smtplib
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
from tests.standards.postfix import Postfix
from tests.standards.signed_zone import signed_zone

AUTHORITY = trustme.CA().create_child_ca()
ANCHORED = AUTHORITY.issue_cert("anchored.example.test")
PINNED, OTHER = trustme.CA().issue_cert("any.example"), trustme.CA().issue_cert("any.example")
GUARD = Guard(allow_private=True)
DELIVERED = DeliveryStatus.DELIVERED
# The fixed ports of Postfix and its resolver are at addresses of this process.
_PLACE = f"{os.getpid() // 256 % 256}.{os.getpid() % 256}"
HOST, NAME_SERVER = f"127.25.{_PLACE}", f"127.53.{_PLACE}"
WAIT_SECONDS = 15.0


def der(blob: trustme.Blob) -> bytes:
    return ssl.PEM_cert_to_DER_cert(blob.bytes().decode())


def digest(blob: trustme.Blob) -> str:
    return hashlib.sha256(der(blob)).hexdigest()


# A domain for each case, whose mail host is at an address of loopback.
RECORDS = [
    *("@ MX 10 pinned", f"pinned A {HOST}", f"_25._tcp.pinned TLSA 3 0 1 {digest(PINNED.cert_chain_pems[0])}"),
    *("byanchor MX 10 anchored", f"anchored A {HOST}", f"_25._tcp.anchored TLSA 2 0 1 {digest(AUTHORITY.cert_pem)}"),
    *("plain MX 10 unprotected", f"unprotected A {HOST}"),
    *("aliased MX 10 alias", "alias CNAME target", f"target A {HOST}"),
    f"_25._tcp.target TLSA 3 0 1 {digest(PINNED.cert_chain_pems[0])}",
    *("original MX 10 alias2", "alias2 CNAME target2", f"target2 A {HOST}"),
    f"_25._tcp.alias2 TLSA 3 0 1 {digest(PINNED.cert_chain_pems[0])}",
    "outside MX 10 mx.unsigned.test.",
]
UNSIGNED = [
    *("@ MX 10 mx", f"mx A {HOST}", f"_25._tcp.mx TLSA 3 0 1 {'00' * 32}"),
]


MATCHING = [
    ("example.test", PINNED),
    ("byanchor.example.test", ANCHORED),
    ("aliased.example.test", PINNED),
    ("original.example.test", PINNED),
]
OTHERS = [
    ("example.test", OTHER),
    ("example.test", None),
    ("byanchor.example.test", PINNED),
    ("byanchor.example.test", AUTHORITY.issue_cert("elsewhere.example")),
    ("byanchor.example.test", None),
    ("aliased.example.test", OTHER),
    ("original.example.test", OTHER),
]
UNPROTECTED = ["plain.example.test", "outside.example.test", "unsigned.test"]


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


@pytest.fixture(scope="module")
def postfix(tmp_path_factory) -> Iterator[Postfix]:
    """Run a Postfix that follows DANE, with a resolver of the same zones at the port that it asks."""
    settings = {
        "smtp_tls_security_level": "dane",
        "smtp_dns_support_level": "dnssec",
        "smtp_host_lookup": "dns",
        "smtp_tcp_port": 25,
        # A host that refused one certificate may offer another one in the next test.
        "default_destination_concurrency_failed_cohort_limit": 0,
    }
    server = Postfix(routes={}, settings=settings, name_server=NAME_SERVER)
    zones = {"signed": ("example.test", RECORDS), "unsigned": ("unsigned.test", UNSIGNED)}
    with signed_zone(tmp_path_factory.mktemp("zone"), address=(NAME_SERVER, 53), **zones), server:
        yield server


def serving(certificate: trustme.LeafCert | None) -> ssl.SSLContext | None:
    """Return the context of a host with a certificate."""
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def deliver_by_postfix(postfix: Postfix, domain: str, certificate: trustme.LeafCert | None) -> bool:
    """Let Postfix deliver a message as `deliver` does; return whether the host got it, or False if it waits."""

    def submit() -> None:
        with smtplib.SMTP("127.0.0.1", postfix.port) as client:
            client.sendmail("me@sender.test", f"ada@{domain}", "Subject: s\r\n\r\nText\r\n")

    async def work() -> bool:
        async with ScriptedServer(tls=serving(certificate), host=HOST, port=25) as host:
            await asyncio.to_thread(submit)
            until = time.monotonic() + WAIT_SECONDS
            while time.monotonic() < until:
                if host.messages:
                    return True
                if [one for one in await asyncio.to_thread(postfix.queue) if one["queue_name"] == "deferred"]:
                    await asyncio.to_thread(postfix.delete_queue)
                    return False
                await asyncio.sleep(0.1)
        raise AssertionError(f"Postfix has not tried {domain}: {postfix.log()}")

    return run(work())


def deliver(address: tuple[str, int], domain: str, certificate: trustme.LeafCert | None) -> DeliveryOutcome:
    """Deliver a message to a domain whose mail host has a certificate, or no TLS."""

    async def work() -> DeliveryOutcome:
        context = serving(certificate)
        resolver = Resolver([address], is_validating=True)
        policies = TlsPolicies(StsPolicies(StsLookup(resolver, UrlRules(guard=GUARD)), NoStore()), DaneLookup(resolver))
        async with ScriptedServer(tls=context, host=HOST) as host:
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


@each(("domain", "certificate"), MATCHING)
def test_a_host_that_matches_its_records_gets_the_message(resolver, domain, certificate):
    outcome = deliver(resolver, domain, certificate)
    assert (outcome.status, outcome.tls) == (DELIVERED, SessionTls("TLSv1.3", TlsPolicyKind.DANE, verified=True))


@each(("domain", "certificate"), OTHERS)
def test_any_other_host_gets_nothing(resolver, domain, certificate):
    outcome = deliver(resolver, domain, certificate)
    assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.TLS)
    assert "DANE records (TLSA)" in outcome.reply.text


@each("domain", UNPROTECTED)
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


@each(("domain", "certificate"), [*MATCHING, *OTHERS, *((domain, OTHER) for domain in UNPROTECTED)])
def test_postfix_delivers_to_the_same_hosts(postfix, domain, certificate):
    outcome = deliver((NAME_SERVER, 53), domain, certificate)
    assert deliver_by_postfix(postfix, domain, certificate) is (outcome.status is DELIVERED)
