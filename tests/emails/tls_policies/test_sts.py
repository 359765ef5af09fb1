"""MTA-STS on the way out: a downgrade, a wrong certificate and a wrong mail host get no message."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryStatus, SessionTls, SuppressOn, TlsPolicyKind
from emails.models import MtaStsPolicy
from emails.pacing.database_thread import run_in_database_thread
from emails.tls_policies.refresh import delete_ended_policies, refresh_due
from tests.core.delivery.policy_host import PolicyHost, policy_text
from tests.core.delivery.relaying import awaited, run
from tests.core.delivery.scripted import then_disconnect
from tests.core.lib.nameserver import SERVFAIL
from tests.emails.tls_policies.receiver import AUTHORITY, Authority, Receiver, running_receiver, send
from tests.rows import each

pytestmark = pytest.mark.django_db(transaction=True)

DELIVERED, DEFERRED = DeliveryStatus.DELIVERED, DeliveryStatus.DEFERRED
# A second day, and a second hour.
LONG_AGO, AN_HOUR_AGO = timedelta(days=1, minutes=1), timedelta(hours=1, minutes=1)


def age(by: timedelta = LONG_AGO) -> None:
    """Let time pass for the policies in the database."""
    MtaStsPolicy.objects.update(
        checked_at=F("checked_at") - by, fetched_at=F("fetched_at") - by, expires_at=F("expires_at") - by
    )


async def aged(by: timedelta = LONG_AGO) -> None:
    await run_in_database_thread(age, by)


def assert_refused(outcome, receiver: Receiver, text: str) -> None:
    """Assert that a message waits because of the policy, and that nothing of it left."""
    assert (outcome.status, outcome.reason) == (DEFERRED, FailureReason.TLS)
    assert "MTA-STS policy" in outcome.reply.text
    assert text in outcome.reply.text
    assert not any(outcome.suppresses(policy) for policy in SuppressOn)
    assert outcome.tls == SessionTls(None, TlsPolicyKind.STS, verified=False)
    assert (receiver.host.messages, receiver.host.said("MAIL")) == ([], [])


class TestEnforced:
    @awaited
    async def test_a_valid_host_gets_the_message(self):
        async with running_receiver() as receiver:
            outcome = await receiver.deliver()
            assert outcome.status is DELIVERED
            assert outcome.tls == SessionTls("TLSv1.3", TlsPolicyKind.STS, verified=True)
            assert receiver.policy_host.requests == ["mta-sts.example.com/.well-known/mta-sts.txt"]

    @awaited
    async def test_a_host_without_tls_gets_nothing(self):
        async with running_receiver(is_plaintext=True) as receiver:
            assert_refused(await receiver.deliver(), receiver, "The host offers no TLS.")

    @each("reply", [b"454 4.7.0 TLS not available\r\n", b"500 What?\r\n", then_disconnect(b"220 Ready\r\n")])
    def test_a_host_that_breaks_off_tls_gets_nothing(self, reply):
        async def work() -> None:
            async with running_receiver(script={"starttls": reply}) as receiver:
                outcome = await receiver.deliver()
                assert (outcome.status, receiver.host.messages) == (DEFERRED, [])
                assert outcome.reason in (FailureReason.TLS, FailureReason.NETWORK)

        run(work())

    @each(("certificate", "text"), [
        (lambda: AUTHORITY.serving("other.example"), "TLS with the host failed"),
        (lambda: AUTHORITY.serving("mx0.example.com", not_after=datetime.now(UTC) - timedelta(days=1)), "expired"),
        (lambda: Authority().serving("mx0.example.com"), "TLS with the host failed"),
    ])  # fmt: skip
    def test_a_host_with_a_wrong_certificate_gets_nothing(self, certificate, text):
        async def work() -> None:
            async with running_receiver(tls=certificate()) as receiver:
                assert_refused(await receiver.deliver(), receiver, text)

        run(work())

    @awaited
    async def test_a_host_that_the_policy_does_not_name_gets_nothing(self):
        async with running_receiver(policy_text(mx="mx1.example.com")) as receiver:
            assert_refused(await receiver.deliver(), receiver, "No mail host of example.com is in its MTA-STS policy")

    @awaited
    async def test_other_hosts_are_left_out(self):
        async with running_receiver(policy_text(mx="*.example.com")) as receiver:
            receiver.dns.put("example.com", {"MX": ["5 mx.attacker.test.", "10 mx0.example.com."]})
            receiver.dns.put("mx.attacker.test", {"A": ["127.0.0.9"]})
            assert (await receiver.deliver()).status is DELIVERED
            assert receiver.dns.count("mx.attacker.test", "A") == 0

    @awaited
    async def test_a_waived_policy_decides_nothing_unless_the_sender_requires_tls(self):
        async with running_receiver(is_plaintext=True) as receiver:
            waived = {"headers": (("TLS-Required", "No"),)}
            outcome = await receiver.deliver(**waived)
            assert (outcome.status, outcome.tls) == (DELIVERED, SessionTls(None, TlsPolicyKind.NONE, verified=False))
            outcome = await receiver.deliver(**waived, requires_tls=True)
            assert (outcome.status, outcome.reason) == (DEFERRED, FailureReason.TLS)

    @awaited
    async def test_connections_are_not_shared_with_domains_without_the_policy(self):
        async with running_receiver() as receiver:
            receiver.dns.put("example.org", {"MX": ["10 mx0.example.com."]})
            transport = receiver.transport()
            domains = ("example.org", "example.com", "example.com", "example.org")
            found = [(await send(transport, domain)).tls for domain in domains]
            transport.close()
            opportunistic = SessionTls("TLSv1.3", TlsPolicyKind.NONE, verified=False)
            verified = SessionTls("TLSv1.3", TlsPolicyKind.STS, verified=True)
            assert found == [opportunistic, verified, verified, opportunistic]


class TestTested:
    @awaited
    async def test_a_valid_host_is_verified(self):
        async with running_receiver(policy_text("testing")) as receiver:
            outcome = await receiver.deliver()
            assert outcome.tls == SessionTls("TLSv1.3", TlsPolicyKind.STS, verified=True)

    @awaited
    async def test_a_host_without_tls_gets_the_message(self):
        async with running_receiver(policy_text("testing"), is_plaintext=True) as receiver:
            outcome = await receiver.deliver()
            assert (outcome.status, len(receiver.host.messages)) == (DELIVERED, 1)
            assert outcome.tls == SessionTls(None, TlsPolicyKind.STS, verified=False)

    @awaited
    async def test_a_wrong_certificate_costs_one_more_connection_and_delays_nothing(self):
        async with running_receiver(policy_text("testing"), tls=Authority().serving("x.example")) as receiver:
            transport = receiver.transport()
            for _ in range(2):
                outcome = await send(transport)
                assert outcome.tls == SessionTls("TLSv1.3", TlsPolicyKind.STS, verified=False)
                transport.end_sessions()
            assert (len(receiver.host.messages), receiver.host.connections) == (2, 3)

    @awaited
    async def test_a_host_that_the_policy_does_not_name_gets_the_message(self):
        async with running_receiver(policy_text("testing", mx="mx1.example.com")) as receiver:
            outcome = await receiver.deliver()
            assert outcome.tls == SessionTls("TLSv1.3", TlsPolicyKind.STS, verified=False)


class TestCached:
    @awaited
    async def test_one_lookup_is_for_all_messages_and_processes(self):
        async with running_receiver() as receiver:
            transport = receiver.transport()
            await asyncio.gather(*(send(transport) for _ in range(5)))
            transport.close()
            await receiver.deliver()
            assert receiver.dns.count("_mta-sts.example.com", "TXT") == 1
            assert len(receiver.policy_host.requests) == 1

    @awaited
    async def test_so_is_that_of_a_domain_without_a_policy(self):
        async with running_receiver(is_plaintext=True) as receiver:
            receiver.dns.remove("_mta-sts.example.com")
            for _ in range(3):
                outcome = await receiver.deliver()
                assert outcome.tls == SessionTls(None, TlsPolicyKind.NONE, verified=False)
            assert receiver.dns.count("_mta-sts.example.com", "TXT") == 1
            assert receiver.policy_host.requests == []
            await aged(AN_HOUR_AGO)
            await receiver.deliver()
            assert receiver.dns.count("_mta-sts.example.com", "TXT") == 2

    @awaited
    async def test_a_new_id_brings_a_new_policy_and_the_same_one_does_not(self):
        async with running_receiver(is_plaintext=True) as receiver:
            receiver.policy_host.body = policy_text("testing")
            await receiver.deliver()
            receiver.policy_host.body = policy_text("enforce")
            await aged(AN_HOUR_AGO)
            assert (await receiver.deliver()).status is DELIVERED
            assert len(receiver.policy_host.requests) == 1
            receiver.dns.put("_mta-sts.example.com", {"TXT": ['"v=STSv1; id=2"']})
            await aged(AN_HOUR_AGO)
            assert (await receiver.deliver()).reason == FailureReason.TLS
            assert len(receiver.policy_host.requests) == 2

    @each("failure", ["status", "type", "size", "redirect", "invalid", "certificate", "dns", "no record", "servfail"])
    def test_a_policy_stays_while_it_cannot_be_fetched(self, failure):
        async def work() -> None:
            async with running_receiver(is_plaintext=True) as receiver:
                assert (await receiver.deliver()).reason == FailureReason.TLS
                break_fetch(receiver, failure)
                await aged()
                assert_refused(await receiver.deliver(), receiver, "(enforce)")
                row = await run_in_database_thread(MtaStsPolicy.objects.get)
                assert bool(row.error) is (failure != "no record")

        run(work())

    @awaited
    async def test_it_ends_after_max_age(self):
        async with running_receiver(policy_text(max_age=86_400), is_plaintext=True) as receiver:
            assert (await receiver.deliver()).reason == FailureReason.TLS
            receiver.dns.remove("_mta-sts.example.com")
            await aged()
            assert (await receiver.deliver()).status is DELIVERED

    @awaited
    async def test_the_mode_none_removes_it_at_once(self):
        async with running_receiver(is_plaintext=True) as receiver:
            assert (await receiver.deliver()).reason == FailureReason.TLS
            receiver.policy_host.body = b"version: STSv1\nmode: none\nmax_age: 86400\n"
            receiver.dns.put("_mta-sts.example.com", {"TXT": ['"v=STSv1; id=2"']})
            await aged(AN_HOUR_AGO)
            outcome = await receiver.deliver()
            assert (outcome.status, outcome.tls) == (DELIVERED, SessionTls(None, TlsPolicyKind.NONE, verified=False))

    @each("failure", ["status", "type", "size", "redirect", "invalid", "certificate", "dns"])
    def test_a_first_policy_that_cannot_be_fetched_is_none(self, failure):
        async def work() -> None:
            async with running_receiver(is_plaintext=True) as receiver:
                break_fetch(receiver, failure)
                assert (await receiver.deliver()).status is DELIVERED
                row = await run_in_database_thread(MtaStsPolicy.objects.get)
                assert (row.mode, bool(row.error)) == ("", True)

        run(work())


class TestRefresh:
    def test_of_a_policy_is_daily_without_any_email(self):
        async def work() -> None:
            async with running_receiver(is_plaintext=True) as receiver:
                await receiver.deliver()
                await aged(timedelta(hours=23))
                await run_in_database_thread(refresh_due, receiver.sts_lookup())
                assert len(receiver.policy_host.requests) == 1
                await aged(timedelta(hours=2))
                receiver.policy_host.body = policy_text("testing")
                await run_in_database_thread(refresh_due, receiver.sts_lookup())
                assert len(receiver.policy_host.requests) == 2
                await run_in_database_thread(refresh_due, receiver.sts_lookup())
                assert len(receiver.policy_host.requests) == 2
                assert (await receiver.deliver()).status is DELIVERED

        run(work())

    def test_that_fails_keeps_the_policy(self):
        async def work() -> None:
            async with running_receiver(is_plaintext=True) as receiver:
                await receiver.deliver()
                await aged()
                receiver.policy_host.status = 500
                await run_in_database_thread(refresh_due, receiver.sts_lookup())
                row = await run_in_database_thread(MtaStsPolicy.objects.get)
                assert (row.mode, row.error) == ("enforce", "The policy host answered 500.")
                assert (await receiver.deliver()).reason == FailureReason.TLS

        run(work())

    def test_what_is_over_is_deleted(self):
        now = datetime.now(UTC)
        rows = [("live", now + timedelta(days=1), LONG_AGO), ("over", now - LONG_AGO, timedelta()),
                ("none", None, timedelta()), ("old", None, LONG_AGO)]  # fmt: skip
        MtaStsPolicy.objects.bulk_create(
            MtaStsPolicy(domain=name, mx=[], max_age=0, expires_at=expires_at, checked_at=now - checked)
            for name, expires_at, checked in rows
        )
        list(delete_ended_policies())
        assert {*MtaStsPolicy.objects.values_list("domain", flat=True)} == {"live", "none"}


def break_fetch(receiver: Receiver, failure: str) -> None:
    """Make the policy unavailable in one way."""
    host: PolicyHost = receiver.policy_host
    match failure:
        case "status":
            host.status = 404
        case "type":
            host.content_type = "text/html"
        case "size":
            host.body += b"\n" * 65_536
        case "redirect":
            host.status, host.location = 301, f"https://mta-sts.example.com:{host.port}/other"
        case "invalid":
            host.body = b"version: STSv1\x00\n"
        case "certificate":
            Authority().ca.issue_cert("mta-sts.example.com").configure_cert(host.tls)
        case "dns":
            receiver.dns.put("mta-sts.example.com", SERVFAIL)
        case "no record":
            receiver.dns.remove("_mta-sts.example.com")
        case "servfail":
            receiver.dns.put("_mta-sts.example.com", SERVFAIL)
