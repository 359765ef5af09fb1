"""DANE on the way out: only a host whose certificate matches its signed records gets a message."""

import hashlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trustme

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryStatus, SessionTls, TlsPolicyKind
from tests.core.delivery.policy_host import policy_text
from tests.core.delivery.relaying import awaited, run
from tests.core.lib.nameserver import SERVFAIL
from tests.emails.tls_policies.receiver import Authority, Receiver, running_receiver, send
from tests.rows import each

pytestmark = pytest.mark.django_db(transaction=True)

DELIVERED, DEFERRED = DeliveryStatus.DELIVERED, DeliveryStatus.DEFERRED
TLSA = "_25._tcp.mx0.example.com"
VERIFIED = SessionTls("TLSv1.3", TlsPolicyKind.DANE, verified=True)
SELF_SIGNED = trustme.CA().issue_cert("elsewhere.example")


def record_of(certificate: trustme.LeafCert, *, usage: int = 3) -> str:
    der = ssl.PEM_cert_to_DER_cert(certificate.cert_chain_pems[0].bytes().decode())
    return f"{usage} 0 1 {hashlib.sha256(der).hexdigest()}"


def serving(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


@asynccontextmanager
async def signed_receiver(*records: str, **options: Any) -> AsyncIterator[Receiver]:
    """Run example.com with signed records, without an MTA-STS policy."""
    async with running_receiver(**{"tls": serving(SELF_SIGNED), **options}) as receiver:
        receiver.is_validating = True
        receiver.dns.remove("_mta-sts.example.com")
        receiver.dns.put(TLSA, {"TLSA": list(records or [record_of(SELF_SIGNED)])})
        receiver.dns.secure = {"example.com", "mx0.example.com", TLSA}
        yield receiver


def assert_refused(outcome, receiver: Receiver, text: str) -> None:
    assert (outcome.status, outcome.reason) == (DEFERRED, FailureReason.TLS)
    assert "DANE records (TLSA) of mx0.example.com" in outcome.reply.text
    assert text in outcome.reply.text
    assert outcome.tls == SessionTls(None, TlsPolicyKind.DANE, verified=False)
    assert (receiver.host.messages, receiver.host.said("MAIL")) == ([], [])


@awaited
async def test_a_matching_certificate_needs_no_authority():
    async with signed_receiver() as receiver:
        outcome = await receiver.deliver()
        assert (outcome.status, outcome.tls) == (DELIVERED, VERIFIED)
        assert (await receiver.deliver(requires_tls=True)).tls == VERIFIED


@awaited
async def test_another_certificate_gets_nothing_even_if_an_authority_signed_it():
    valid = {"tls": Authority().serving("mx0.example.com")}
    async with signed_receiver(**valid) as receiver:
        assert_refused(await receiver.deliver(), receiver, "The certificate of the host is another one.")


@awaited
async def test_a_host_without_tls_gets_nothing():
    async with signed_receiver(is_plaintext=True) as receiver:
        assert_refused(await receiver.deliver(), receiver, "The host offers no TLS.")


@each("failing", [TLSA, "mx0.example.com"])
def test_a_host_whose_records_cannot_be_looked_up_gets_nothing(failing):
    async def work() -> None:
        async with signed_receiver() as receiver:
            receiver.dns.put(failing, SERVFAIL)
            assert_refused(await receiver.deliver(), receiver, "cannot be looked up")

    run(work())


@each("unsigned", ["example.com", "mx0.example.com", TLSA])
def test_unsigned_records_decide_nothing(unsigned):
    async def work() -> None:
        async with signed_receiver(f"3 0 1 {'00' * 32}") as receiver:
            receiver.dns.secure.remove(unsigned)
            outcome = await receiver.deliver()
            assert outcome.tls == SessionTls("TLSv1.3", TlsPolicyKind.NONE, verified=False)

    run(work())


@awaited
async def test_without_a_validating_resolver_they_are_not_looked_up():
    async with signed_receiver(f"3 0 1 {'00' * 32}") as receiver:
        receiver.is_validating = False
        assert (await receiver.deliver()).status is DELIVERED
        assert receiver.dns.count(TLSA, "TLSA") == 0


@each("record", [f"1 0 1 {'00' * 32}", f"0 0 1 {'00' * 32}", f"3 9 1 {'00' * 32}"])
def test_unusable_records_require_tls_of_any_certificate(record):
    async def work() -> None:
        async with signed_receiver(record) as receiver:
            outcome = await receiver.deliver()
            assert outcome.tls == SessionTls("TLSv1.3", TlsPolicyKind.DANE, verified=False)
            # A message that requires a verified host needs an authority then.
            assert (await receiver.deliver(requires_tls=True)).reason == FailureReason.TLS
        async with signed_receiver(record, is_plaintext=True) as receiver:
            assert_refused(await receiver.deliver(), receiver, "The host offers no TLS.")

    run(work())


@each(("at", "is_target_signed"), [
    ("_25._tcp.target.example.net", True),
    (TLSA, True),
    (TLSA, False),
])  # fmt: skip
def test_records_of_an_alias_are_at_its_target_or_at_its_own_name(at, is_target_signed):
    async def work() -> None:
        async with signed_receiver() as receiver:
            receiver.dns.remove(TLSA)
            receiver.dns.put("mx0.example.com", {"CNAME": ["target.example.net."]})
            receiver.dns.put("target.example.net", {"A": ["127.0.0.1"]})
            receiver.dns.put(at, {"TLSA": [record_of(SELF_SIGNED)]})
            kinds = ("CNAME", "A", "AAAA") if is_target_signed else ("CNAME",)
            receiver.dns.secure = {"example.com", at, *(f"mx0.example.com {kind}" for kind in kinds)}
            assert (await receiver.deliver()).tls == VERIFIED

    run(work())


@awaited
async def test_they_come_before_the_policy_of_mta_sts():
    async with signed_receiver(body=policy_text(mx="other.example.com")) as receiver:
        receiver.dns.put("_mta-sts.example.com", {"TXT": ['"v=STSv1; id=1"']})
        assert (await receiver.deliver()).tls == VERIFIED
        assert receiver.policy_host.requests == []


@awaited
async def test_a_host_without_records_follows_the_policy_of_mta_sts():
    async with signed_receiver(body=policy_text()) as receiver:
        receiver.dns.remove(TLSA)
        receiver.dns.put("_mta-sts.example.com", {"TXT": ['"v=STSv1; id=1"']})
        outcome = await receiver.deliver()
        assert (outcome.reason, outcome.tls) == (
            FailureReason.TLS,
            SessionTls(None, TlsPolicyKind.STS, verified=False),
        )


@awaited
async def test_one_lookup_is_for_all_messages_of_five_minutes():
    async with signed_receiver() as receiver:
        transport = receiver.transport()
        for _ in range(3):
            await send(transport)
        transport.close()
        assert receiver.dns.count(TLSA, "TLSA") == 1
