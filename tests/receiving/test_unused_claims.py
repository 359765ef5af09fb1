"""Claims of received messages that end without a crash: by an outage of the database, a stopped process, a shutdown."""

import pytest
from django.db.models import F

from core.lib.worker.processor import QueueProcessor
from receiving import received_work
from receiving.models import Message
from receiving.received_work import ReceivedQueueWork
from tests.core.lib.worker.outages import expect_outage, lose_connection
from tests.receiving.builders import arrive, make_route, process_received, with_field

pytestmark = pytest.mark.django_db


def attempts() -> list[int]:
    return [*Message.objects.order_by("id").values_list("attempts", flat=True)]


def end_leases() -> None:
    Message.objects.update(due_at=F("received_at"))


@pytest.fixture
def emails(alice, receiving):
    make_route(alice.workspace)
    return [arrive(), arrive(with_field("X-Other: 1"))]


@pytest.mark.django_db(transaction=True)
def test_an_outage_while_messages_are_loaded_uses_no_attempt(emails, monkeypatch):
    work = ReceivedQueueWork()
    with monkeypatch.context() as patched:
        patched.setattr(received_work, "failpoint", lose_connection)
        for _ in range(5):
            with expect_outage():
                work.claim(16)
            work.unused.give_back()
            assert attempts() == [0, 0]
    QueueProcessor(work).run()
    assert {email.status for email in _refreshed(emails)} == {"processed"}


def _refreshed(emails):
    for email in emails:
        email.refresh_from_db()
    return emails


def test_a_process_that_was_stopped_for_longer_than_its_lease_uses_no_attempt(emails):
    stopped, other = ReceivedQueueWork(), ReceivedQueueWork()
    lost = stopped.claim(16).jobs
    end_leases()
    assert len(other.claim(16).jobs) == 2
    assert attempts() == [2, 2]
    stopped.record([stopped.crash_result(job, ValueError()) for job in lost])
    stopped.unused.give_back()
    assert attempts() == [1, 1]
    # The lease of the other process is unchanged.
    assert not ReceivedQueueWork().claim(16).jobs


def test_claims_that_are_given_back_are_due_at_once(emails):
    work = ReceivedQueueWork()
    claims = [job.claim for job in work.claim(16).jobs]
    work.unused.add(claims)
    work.unused.give_back()
    assert attempts() == [0, 0]
    process_received()
    assert {email.status for email in _refreshed(emails)} == {"processed"}
    # They have an outcome: nothing is left to give back.
    work.unused.add(claims)
    work.unused.give_back()
    assert attempts() == [1, 1]
