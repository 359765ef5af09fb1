"""Counts of sessions for TLS reports: the result of each attempt, and the one row a policy, result and day."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.counters import counters
from core.counters.models import CounterDelta, DailyCounter, HourlyCounter
from core.delivery.bounces.replies import (
    DeliveryOutcome,
    DeliveryStatus,
    Reply,
    SessionTls,
    TlsPolicyKind,
    TlsResult,
)
from emails.models import MtaStsPolicy
from emails.pacing.database_thread import run_in_database_thread
from emails.sending.outcomes import SendResult, record_results
from emails.tls_policies.refresh import delete_ended_policies
from emails.tls_policies.report_counts import SessionCount, delete_counts, read_counts
from tests.core.delivery.policy_host import policy_text
from tests.core.delivery.relaying import awaited, run
from tests.core.lib.nameserver import SERVFAIL
from tests.emails.builders import accept, claim_entries
from tests.emails.tls_policies.receiver import AUTHORITY, Authority, Receiver, running_receiver, send
from tests.emails.tls_policies.test_sts import AN_HOUR_AGO, aged, break_fetch
from tests.rows import each

pytestmark = pytest.mark.django_db(transaction=True)

ASKS = "v=TLSRPTv1; rua=mailto:tls@example.com"
NONE, STS, DANE = TlsPolicyKind
TESTING = policy_text("testing")
YESTERDAY = datetime.now(UTC) - timedelta(days=1)


def ask_for_reports(receiver: Receiver, record: str = ASKS) -> None:
    receiver.finds_reports = True
    receiver.dns.put("_smtp._tls.example.com", {"TXT": [f'"{record}"']})


def counted(outcome: DeliveryOutcome) -> tuple[TlsPolicyKind, TlsResult | None, str]:
    assert outcome.tls is not None
    return outcome.tls.policy, outcome.tls.result, outcome.tls.domain


class TestResults:
    @each(("body", "options", "result"), [
        (TESTING, {}, TlsResult.SUCCESS),
        (TESTING, {"is_plaintext": True}, TlsResult.NO_STARTTLS),
        (TESTING, {"script": {"starttls": b"454 4.7.0 TLS not available\r\n"}}, TlsResult.NO_STARTTLS),
        (TESTING, {"tls": lambda: AUTHORITY.serving("other.example")}, TlsResult.HOST_MISMATCH),
        (TESTING, {"tls": lambda: Authority().serving("mx0.example.com")}, TlsResult.NOT_TRUSTED),
        (TESTING, {"tls": lambda: AUTHORITY.serving("mx0.example.com", not_after=YESTERDAY)}, TlsResult.EXPIRED),
        (policy_text("testing", mx="mx1.example.com"), {}, TlsResult.MX_MISMATCH),
        (policy_text(), {}, TlsResult.SUCCESS),
        (policy_text(), {"is_plaintext": True}, TlsResult.NO_STARTTLS),
        (policy_text(), {"tls": lambda: AUTHORITY.serving("other.example")}, TlsResult.HOST_MISMATCH),
        (policy_text(mx="mx1.example.com"), {}, TlsResult.MX_MISMATCH),
    ])  # fmt: skip
    def test_of_a_policy_are_the_same_whether_it_is_tested_or_enforced(self, body, options, result):
        async def work() -> None:
            built = {name: value() if callable(value) else value for name, value in options.items()}
            async with running_receiver(body, **built) as receiver:
                ask_for_reports(receiver)
                transport = receiver.transport()
                for _ in range(2):
                    outcome = await send(transport)
                    assert counted(outcome) == (STS, result, "example.com")
                    is_delivered = b"testing" in body or result is TlsResult.SUCCESS
                    assert (outcome.status is DeliveryStatus.DELIVERED) is is_delivered
                    transport.end_sessions()
                transport.close()

        run(work())

    @each(("failure", "result"), [
        ("status", TlsResult.STS_FETCH_ERROR),
        ("dns", TlsResult.STS_FETCH_ERROR),
        ("type", TlsResult.STS_INVALID),
        ("size", TlsResult.STS_INVALID),
        ("invalid", TlsResult.STS_INVALID),
        ("certificate", TlsResult.STS_CERTIFICATE),
        ("no record", TlsResult.SUCCESS),
        ("servfail", TlsResult.SUCCESS),
    ])  # fmt: skip
    def test_of_a_policy_that_cannot_be_fetched_are_known_to_all_processes(self, failure, result):
        async def work() -> None:
            async with running_receiver() as receiver:
                ask_for_reports(receiver)
                break_fetch(receiver, failure)
                for _ in range(2):
                    assert counted(await receiver.deliver()) == (NONE, result, "example.com")

        run(work())

    @awaited
    async def test_of_a_known_policy_stay_while_it_cannot_be_fetched_again(self):
        async with running_receiver() as receiver:
            ask_for_reports(receiver)
            assert counted(await receiver.deliver()) == (STS, TlsResult.SUCCESS, "example.com")
            receiver.policy_host.status = 500
            receiver.dns.put("_mta-sts.example.com", {"TXT": ['"v=STSv1; id=2"']})
            await aged(AN_HOUR_AGO)
            assert counted(await receiver.deliver()) == (STS, TlsResult.SUCCESS, "example.com")

    @awaited
    async def test_without_a_policy_name_the_missing_tls(self):
        async with running_receiver(is_plaintext=True) as receiver:
            receiver.dns.remove("_mta-sts.example.com")
            ask_for_reports(receiver)
            assert counted(await receiver.deliver()) == (NONE, TlsResult.NO_STARTTLS, "example.com")

    @awaited
    async def test_of_a_refused_recipient_is_that_of_its_session(self):
        async with running_receiver(script={"rcpt": b"550 5.1.1 No such user\r\n"}) as receiver:
            ask_for_reports(receiver)
            outcome = await receiver.deliver()
            assert outcome.status is DeliveryStatus.BOUNCED
            assert counted(outcome) == (STS, TlsResult.SUCCESS, "example.com")

    @awaited
    async def test_are_not_those_of_a_message_that_waives_the_policies(self):
        async with running_receiver() as receiver:
            ask_for_reports(receiver)
            outcome = await receiver.deliver(headers=(("TLS-Required", "No"),))
            assert counted(outcome) == (NONE, None, "")


class TestDane:
    @each(("records", "result"), [
        ({"A": SERVFAIL}, TlsResult.DNSSEC_INVALID),
        ({"TLSA": [f"3 0 1 {'00' * 32}"]}, TlsResult.TLSA_MISMATCH),
    ])  # fmt: skip
    def test_failures_are_counted_though_mta_sts_is_not_used(self, records, result):
        async def work() -> None:
            async with running_receiver() as receiver:
                ask_for_reports(receiver)
                receiver.is_validating = True
                receiver.dns.secure |= {"example.com", "mx0.example.com", "_25._tcp.mx0.example.com"}
                if "TLSA" in records:
                    receiver.dns.put("_25._tcp.mx0.example.com", records)
                else:
                    receiver.dns.put("_25._tcp.mx0.example.com", SERVFAIL)
                assert counted(await receiver.deliver()) == (DANE, result, "example.com")
                row = await run_in_database_thread(MtaStsPolicy.objects.get)
                expected = ["_25._tcp.mx0.example.com. IN TLSA 3 0 1 " + "00" * 32] if "TLSA" in records else []
                assert (row.report_to, row.tlsa) == ("mailto:tls@example.com", expected)

        run(work())


class TestAsking:
    @awaited
    async def test_is_looked_up_once_together_with_the_policy(self):
        async with running_receiver() as receiver:
            ask_for_reports(receiver)
            for _ in range(3):
                await receiver.deliver()
            assert receiver.dns.count("_smtp._tls.example.com", "TXT") == 1

    @awaited
    async def test_is_not_looked_up_without_reports(self):
        async with running_receiver() as receiver:
            ask_for_reports(receiver)
            receiver.finds_reports = False
            assert counted(await receiver.deliver()) == (STS, None, "")
            assert receiver.dns.count("_smtp._tls.example.com", "TXT") == 0

    @each("record", ["v=TLSRPTv1; rua=ftp://example.com", "v=TLSRPTv2; rua=mailto:tls@example.com", "v=TLSRPTv1;"])
    def test_with_an_invalid_record_is_none(self, record):
        async def work() -> None:
            async with running_receiver() as receiver:
                ask_for_reports(receiver, record)
                assert counted(await receiver.deliver()) == (STS, None, "")

        run(work())

    @awaited
    async def test_stays_while_the_dns_does_not_answer_and_ends_with_the_record(self):
        async with running_receiver() as receiver:
            ask_for_reports(receiver)
            await receiver.deliver()
            receiver.dns.put("_smtp._tls.example.com", SERVFAIL)
            await aged(AN_HOUR_AGO)
            assert counted(await receiver.deliver()) == (STS, TlsResult.SUCCESS, "example.com")
            receiver.dns.remove("_smtp._tls.example.com")
            await aged(AN_HOUR_AGO)
            assert counted(await receiver.deliver()) == (STS, None, "")


def delivered(result: TlsResult | None, domain: str = "") -> DeliveryOutcome:
    tls = SessionTls("TLSv1.3", STS, verified=True, result=result, domain=domain)
    return DeliveryOutcome(DeliveryStatus.DELIVERED, Reply(250, "Ok"), tls=tls)


def record(workspace, outcome: DeliveryOutcome, *, count: int = 3) -> list[str]:
    """Record the outcome of some attempts; return the statements."""
    accept(workspace, count=count)
    claims = claim_entries()
    with CaptureQueriesContext(connection) as queries:
        record_results([SendResult(claim, outcome) for claim in claims])
    return [query["sql"].split("(")[0] for query in queries]


class TestCounts:
    def test_are_written_by_the_statement_of_all_outcomes(self, workspace):
        usual = record(workspace, delivered(None))
        assert record(workspace, delivered(TlsResult.SUCCESS, "example.com")) == usual
        assert CounterDelta.objects.filter(key="tlsrpt.sts.success").count() == 1

    def test_are_one_row_a_policy_result_and_day_folded_or_not(self, workspace):
        today = datetime.now(UTC).date()
        for result in (TlsResult.SUCCESS, TlsResult.TLSA_MISMATCH):
            record(workspace, delivered(result, "example.com"))
        record(workspace, delivered(TlsResult.SUCCESS, "example.org"), count=2)
        expected = {
            "example.com": [SessionCount(STS, TlsResult.TLSA_MISMATCH, 3), SessionCount(STS, TlsResult.SUCCESS, 3)],
            "example.org": [SessionCount(STS, TlsResult.SUCCESS, 2)],
        }
        domains = ["example.com", "example.net", "example.org"]
        assert read_counts(domains, day=today) == expected
        counters.fold()
        record(workspace, delivered(TlsResult.SUCCESS, "example.org"), count=1)
        expected["example.org"] = [SessionCount(STS, TlsResult.SUCCESS, 3)]
        assert read_counts(domains, day=today) == expected
        assert DailyCounter.objects.filter(key__startswith="tlsrpt.").count() == 3
        assert read_counts(domains, day=today - timedelta(days=1)) == {}

    def test_are_deleted_until_the_end_of_a_day(self, workspace):
        today = datetime.now(UTC).date()
        record(workspace, delivered(TlsResult.SUCCESS, "example.com"))
        counters.fold()
        delete_counts(["example.com"], day=today - timedelta(days=1))
        assert HourlyCounter.objects.filter(key__startswith="tlsrpt.").count() == 1
        delete_counts(["example.org"], day=today)
        assert DailyCounter.objects.filter(key__startswith="tlsrpt.").count() == 1
        delete_counts(["example.com"], day=today)
        for model in (HourlyCounter, DailyCounter):
            assert not model.objects.filter(key__startswith="tlsrpt.").exists()

    def test_need_the_domain_for_longer_than_a_day(self, db):
        now = datetime.now(UTC)
        for name, days in (("asks.example", 2), ("asked.example", 4)):
            MtaStsPolicy.objects.create(
                domain=name, mx=[], max_age=0, report_to="mailto:a@b.example", checked_at=now - timedelta(days=days)
            )
        list(delete_ended_policies())
        assert MtaStsPolicy.objects.get().domain == "asks.example"
