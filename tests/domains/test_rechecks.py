"""Periodic and requested checks: intervals, sessions, claims, and concurrent checks of one domain."""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import close_old_connections, connection
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from core.lib.network.resolver import Resolver
from core.workspaces.models import Workspace
from domains.check_queue import processor, verify
from domains.check_queue.claims import MAX_CHECKS_PER_WORKSPACE, claim_due_checks, record_check, request_check
from domains.check_queue.processor import DomainCheckQueueWork, domain_checks_processor, expected_records
from domains.check_queue.verify import verify_domain
from domains.lifecycle import DomainStatus, VerificationOutcome, next_interval
from domains.models import Domain
from domains.record_checks import dns_cache
from domains.record_checks.check_all import ExpectedRecords, check_domain_records
from domains.services import delete_domain
from domains.tasks import process_queue
from tests.conftest import Account, Api, make_domain, make_key
from tests.core.lib.nameserver import SERVFAIL, SILENCE, NameServer
from tests.core.lib.worker.outages import expect_outage, lose_connection
from tests.domains.conftest import NAME, Owner, check_due_domains, in_thread
from tests.plans import plan_of
from tests.rows import each

pytestmark = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)


def due_in(domain: Domain) -> timedelta:
    return Domain.objects.get(id=domain.id).check_due_at - timezone.now()


def make_due(*domains: Domain) -> None:
    Domain.objects.filter(id__in=[domain.id for domain in domains]).update(check_due_at=Now())


MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
WAITS = [
    # status, outcome, watched for, a new key unpublished; the interval
    (DomainStatus.PENDING, VerificationOutcome.FAILED, timedelta(0), False, MINUTE),
    (DomainStatus.PENDING, VerificationOutcome.FAILED, timedelta(minutes=29, seconds=59), False, MINUTE),
    (DomainStatus.PENDING, VerificationOutcome.FAILED, timedelta(minutes=30), False, HOUR),
    (DomainStatus.PENDING, VerificationOutcome.UNKNOWN, timedelta(0), False, MINUTE),
    (DomainStatus.PENDING, VerificationOutcome.FAILED, timedelta(days=7), False, DAY),
    (DomainStatus.PENDING, VerificationOutcome.UNKNOWN, timedelta(days=7), False, HOUR),
    (DomainStatus.FAILED, VerificationOutcome.FAILED, timedelta(days=400), False, DAY),
    (DomainStatus.FAILED, VerificationOutcome.FAILED, timedelta(0), False, MINUTE),
    (DomainStatus.VERIFIED, VerificationOutcome.PASSED, timedelta(0), False, DAY),
    (DomainStatus.VERIFIED, VerificationOutcome.PASSED, timedelta(0), True, MINUTE),
    (DomainStatus.VERIFIED, VerificationOutcome.PASSED, timedelta(days=8), True, DAY),
    (DomainStatus.VERIFIED, VerificationOutcome.UNKNOWN, timedelta(days=8), False, HOUR),
    (DomainStatus.TEMPORARY_FAILURE, VerificationOutcome.FAILED, timedelta(days=8), False, HOUR),
]


@each(("status", "outcome", "watched_for", "is_waiting", "wait"), WAITS)
def test_the_interval_until_the_next_check(status, outcome, watched_for, is_waiting, wait):
    waits = [next_interval(status, outcome, watched_for=watched_for, is_waiting=is_waiting) for _ in range(50)]
    assert wait * 0.9 <= min(waits) < max(waits) <= wait * 1.1


def test_a_new_domain_is_checked_at_the_next_run_and_then_every_minute(owner: Owner):
    domain = Domain.objects.get(name=NAME)
    assert due_in(domain) <= timedelta(0)
    domain_checks_processor.cache_clear()
    process_queue()
    assert Domain.objects.get(name=NAME).last_checked_at
    assert timedelta(seconds=50) < due_in(domain) < timedelta(seconds=70)


def test_a_periodic_check_verifies_published_records(owner: Owner):
    check_due_domains()
    owner.publish()
    check_due_domains()
    assert Domain.objects.get(name=NAME).status == "pending"
    make_due(Domain.objects.get(name=NAME))
    check_due_domains()
    assert Domain.objects.get(name=NAME).status == "verified"


def test_a_verified_domain_is_checked_daily(owner: Owner):
    owner.publish().verify()
    assert timedelta(hours=21) < due_in(Domain.objects.get(name=NAME)) < timedelta(hours=27)


def test_requesting_a_check_restarts_the_watch(owner: Owner):
    Domain.objects.update(watched_since=Now() - timedelta(days=10), check_due_at=Now())
    check_due_domains()
    domain = Domain.objects.get(name=NAME)
    assert due_in(domain) > timedelta(hours=20)
    owner.verify()
    assert due_in(domain) < timedelta(seconds=70)


def test_more_domains_than_sessions_are_checked(alice: Account, dns: NameServer, monkeypatch):
    monkeypatch.setattr(DomainCheckQueueWork, "sessions", 3)
    for number in range(8):
        make_domain(alice.workspace, f"d{number}.example")
    check_due_domains()
    assert Domain.objects.filter(checks_recorded=1).count() == 8
    assert claim_due_checks(100) == []


def test_a_claim_that_is_never_recorded_is_due_again_after_five_minutes(alice: Account):
    domain = make_domain(alice.workspace, "a.example")
    assert [claim.domain_id for claim in claim_due_checks(10)] == [domain.id]
    assert claim_due_checks(10) == []
    assert timedelta(minutes=4) < due_in(domain) <= timedelta(minutes=5)
    Domain.objects.update(check_due_at=F("check_due_at") - timedelta(minutes=5))
    assert [claim.number for claim in claim_due_checks(10)] == [2]


@committed
def test_an_outage_while_domains_are_loaded_does_not_delay_their_checks(alice: Account, monkeypatch):
    make_domain(alice.workspace, "a.example")
    work = DomainCheckQueueWork()
    monkeypatch.setattr(processor, "failpoint", lose_connection)
    with expect_outage():
        work.claim(8)
    work.unused.give_back()
    monkeypatch.undo()
    assert [job.claim.number for job in work.claim(8).jobs] == [2]


def test_an_exception_for_one_domain_does_not_affect_the_others(alice: Account, dns: NameServer, monkeypatch, caplog):
    broken = make_domain(alice.workspace, "broken.example")
    whole = make_domain(alice.workspace, "whole.example")

    async def fail(expected: Any, resolver: Any) -> Any:
        if expected.domain == broken.name:
            raise RuntimeError("boom")
        return await check_domain_records(expected, resolver)

    monkeypatch.setitem(processor.CHECKS, ExpectedRecords, fail)
    check_due_domains()
    assert Domain.objects.get(id=whole.id).last_checked_at
    assert Domain.objects.get(id=broken.id).last_checked_at is None
    assert "a domain check failed" in caplog.text


def test_a_result_for_a_deleted_domain_is_ignored(alice: Account, dns: NameServer):
    domain = make_domain(alice.workspace, "a.example")
    (claim,) = claim_due_checks(1)
    result = asyncio.run(check_domain_records(expected_records(domain), Resolver([dns.address])))
    domain.delete()
    record_check(claim, result)
    assert not Domain.objects.exists()


def test_a_late_result_changes_nothing(owner: Owner):
    domain = Domain.objects.get(name=NAME)
    (late,) = claim_due_checks(1)
    resolver = Resolver([owner.zone.server.address])
    before = asyncio.run(check_domain_records(expected_records(domain), resolver))
    owner.publish().verify()
    record_check(late, before)
    assert owner.api.get(owner.path).json() == owner.body
    assert owner.body["status"] == "verified"


def test_an_earlier_check_is_recorded_while_a_newer_one_is_running(owner: Owner):
    domain = Domain.objects.get(name=NAME)
    (first,) = claim_due_checks(1)
    request_check(domain)
    (second,) = claim_due_checks(1)
    resolver = Resolver([owner.zone.server.address])
    empty = asyncio.run(check_domain_records(expected_records(domain), resolver))
    record_check(first, empty)
    assert Domain.objects.get(name=NAME).checks_recorded == 1
    assert Domain.objects.get(name=NAME).checking_until
    owner.publish()
    record_check(second, asyncio.run(check_domain_records(expected_records(domain), resolver)))
    record_check(first, empty)
    assert Domain.objects.get(name=NAME).status == "verified"


@committed
def test_workers_at_the_same_time_never_check_a_domain_twice(alice: Account, dns: NameServer, settings, monkeypatch):
    monkeypatch.setattr(DomainCheckQueueWork, "sessions", 2)
    domains = [make_domain(alice.workspace, f"d{number}.example") for number in range(12)]
    threads = [in_thread(check_due_domains) for _ in range(4)]
    for thread in threads:
        thread.join()
    assert {domain.checks_begun for domain in Domain.objects.all()} == {1}
    assert all(dns.count(domain.name, "MX") == 1 for domain in domains)


@committed
@pytest.mark.usefixtures("worker")
def test_the_response_has_the_result_of_the_worker(alice: Account, zone):
    owner = Owner(Api(make_key(alice.workspace)), zone, NAME).publish()
    started = time.monotonic()
    body = owner.api.post(f"{owner.path}/verify").json()
    assert time.monotonic() - started < 2
    assert (body["status"], {record["status"] for record in body["records"]}) == ("verified", {"verified"})


@committed
def test_without_a_worker_the_response_is_the_last_state_and_the_domain_stays_due(alice: Account, zone, monkeypatch):
    monkeypatch.setattr(verify, "MAX_WAIT_SECONDS", 0.2)
    owner = Owner(Api(make_key(alice.workspace)), zone, NAME).publish()
    assert owner.api.post(f"{owner.path}/verify").json() == owner.body
    assert owner.body["lastCheckedAt"] is None
    check_due_domains()
    assert owner.api.get(owner.path).json()["status"] == "verified"


@committed
@pytest.mark.usefixtures("worker")
def test_while_a_domain_is_being_checked_the_response_is_its_last_state(
    alice: Account, zone, dns: NameServer, monkeypatch
):
    # With the two seconds until a worker's timer finds the check, less than a request waits.
    monkeypatch.setattr(dns_cache, "ANSWER_SECONDS", 2)
    monkeypatch.setattr(dns_cache, "HINT_SECONDS", 2.1)
    owner = Owner(Api(make_key(alice.workspace)), zone, NAME)
    check_due_domains()
    dns.put(NAME, SILENCE)
    before = Domain.objects.get(name=NAME)
    first = in_thread(lambda: verify_domain(before))
    wait_until(lambda: Domain.objects.get(name=NAME).checking_until)
    started = time.monotonic()
    assert owner.api.post(f"{owner.path}/verify").status_code == 200
    assert time.monotonic() - started < 2
    first.join()
    assert Domain.objects.get(name=NAME).checks_recorded == before.checks_begun + 2


def test_an_older_check_does_not_end_a_request(owner: Owner):
    (older,) = claim_due_checks(1)
    domain = Domain.objects.get(name=NAME)
    request_check(domain)
    resolver = Resolver([owner.zone.server.address])
    record_check(older, asyncio.run(check_domain_records(expected_records(domain), resolver)))
    assert due_in(domain) < timedelta(0)
    owner.publish()
    check_due_domains()
    assert Domain.objects.get(name=NAME).status == "verified"


def test_a_requested_check_is_claimed_before_late_periodic_ones(alice: Account):
    late = make_domain(alice.workspace, "late.example")
    Domain.objects.update(check_due_at=Now() - timedelta(hours=20))
    requested = make_domain(alice.workspace, "requested.example")
    request_check(requested)
    assert [claim.domain_id for claim in claim_due_checks(1) + claim_due_checks(1)] == [requested.id, late.id]


@committed
def test_a_request_wakes_a_worker(alice: Account, api: Api, monkeypatch):
    woken = []
    monkeypatch.setattr("core.lib.worker.wakeup.notify", woken.append)
    domain = make_domain(alice.workspace, "a.example")
    api.post(f"/domains/{domain.id}/verify")
    assert woken == ["domains"]


@committed
def test_a_domain_can_be_deleted_while_a_check_is_recorded(alice: Account, dns: NameServer):
    for number in range(5):
        domain = make_domain(alice.workspace, f"d{number}.example")
        checking_it = in_thread(check_due_domains)
        wait_until(lambda name=domain.name: dns.count(name, "MX"))
        delete_domain(domain)
        checking_it.join()
    assert not Domain.objects.exists()


@committed
@pytest.mark.usefixtures("_short_dns_timeouts")
def test_no_transaction_is_open_during_dns_lookups(alice: Account, dns: NameServer):
    domain = make_domain(alice.workspace, NAME)
    dns.put(NAME, SILENCE)
    request_check(domain)
    thread = in_thread(check_due_domains)
    wait_until(lambda: dns.questions)
    options = connection.get_connection_params()
    known = {name: options[name] for name in ("host", "port", "user", "password", "dbname") if options.get(name)}
    with psycopg.connect(**known, autocommit=True) as other:
        query = "SELECT state FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        states = {state for (state,) in other.execute(query)}
    assert states == {"idle"}
    thread.join()


def test_a_workspace_can_check_a_limited_number_of_domains_at_once(alice: Account, bob: Account):
    for number in range(MAX_CHECKS_PER_WORKSPACE):
        assert request_check(make_domain(alice.workspace, f"d{number}.example"))
    api = Api(make_key(alice.workspace))
    response = api.post(f"/domains/{make_domain(alice.workspace, 'last.example').id}/verify")
    assert (response.status_code, response.json()["code"]) == (429, "too_many_concurrent_requests")
    assert response["Retry-After"] == "5"
    assert request_check(make_domain(bob.workspace, "bobs.example"))
    Domain.objects.update(checking_until=Now())
    assert api.post(f"/domains/{Domain.objects.get(name='last.example').id}/verify").status_code == 200


def test_a_check_leaves_no_claim_behind(owner: Owner, dns: NameServer):
    for record in owner.body["records"]:
        dns.put(record["fqdn"], SERVFAIL)
    owner.verify()
    assert Domain.objects.get(name=NAME).checking_until is None


def test_verifying_repeatedly_is_safe(owner: Owner):
    owner.publish()
    first = owner.verify()
    second = owner.verify()
    assert {**second, "lastCheckedAt": None} == {**first, "lastCheckedAt": None}


def test_due_domains_are_found_by_index(alice: Account):
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO domains_domain (id, workspace_id, name, status, check_due_at)
               SELECT gen_random_uuid(), (SELECT id FROM workspaces_workspace LIMIT 1), n || '.example', 'verified',
                      now() + n * interval '1 minute' FROM generate_series(1, 20000) n"""
        )
        cursor.execute("ANALYZE domains_domain")
    plan = plan_of(
        """SELECT id FROM domains_domain WHERE check_due_at <= statement_timestamp()
           ORDER BY check_due_at LIMIT 20 FOR UPDATE SKIP LOCKED"""
    )
    assert "domain_check_due" in plan
    assert "Sort" not in plan


def wait_until(is_so: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 5
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)
        close_old_connections()


def test_no_more_domains_become_verified_than_the_plan_allows(owner: Owner):
    domain = Domain.objects.get(name=NAME)
    Workspace.objects.filter(id=domain.workspace_id).update(plan="free")
    other = make_domain(domain.workspace, "other.example")
    Domain.objects.filter(id=other.id).update(verified_at=Now(), status="failed")
    owner.publish()
    check_due_domains()
    domain.refresh_from_db()
    assert (domain.status, domain.verified_at, domain.checks_recorded) == ("pending", None, 1)
    assert owner.api.post(f"{owner.path}/verify").json()["code"] == "plan_limit_reached"
    # With a place again, the next check verifies it.
    delete_domain(Domain.objects.get(id=other.id))
    assert owner.verify()["status"] == "verified"
