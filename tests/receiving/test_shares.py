"""Shares of workspaces in the queue of messages to read: one that was sent thousands does not hold up another."""

from collections import Counter
from datetime import timedelta

import pytest
from django.db.models import F

from receiving import received_work
from receiving.models import Message
from receiving.received_work import SESSIONS, WORKSPACE_SESSIONS, ReceivedQueueWork
from receiving.services import delete_email
from receiving.states import SMALL_BYTES
from tests.conftest import make_account
from tests.receiving.builders import arrive, make_route

pytestmark = pytest.mark.django_db

LARGE_BYTES = SMALL_BYTES + 1


def add_messages(workspace, count: int, *, size: int = 1000, attempts: int = 0) -> None:
    """Store messages of an earlier hour, without content."""
    Message.objects.bulk_create(
        Message(content_id="rcc_" + "0" * 22, sha256=b"", size=size, workspace_id=workspace.id, attempts=attempts)
        for _ in range(count)
    )
    Message.objects.filter(workspace_id=workspace.id).update(due_at=F("received_at") - timedelta(hours=1))


def claimed(work, limit: int = SESSIONS) -> Counter:
    counts = Counter()
    for job in work.claim(limit).jobs:
        counts[job.claim.workspace] += 1
    return counts


@pytest.fixture
def bob(db):
    return make_account("bob")


def test_a_thousand_messages_of_one_workspace_do_not_delay_another(alice, bob):
    add_messages(bob.workspace, 1000)
    add_messages(alice.workspace, 3)
    counts = claimed(ReceivedQueueWork())
    assert sorted(counts.values()) == [3, SESSIONS // 2]


def test_a_workspace_leaves_sessions_to_others(alice, bob):
    work = ReceivedQueueWork()
    add_messages(bob.workspace, 100)
    assert [*claimed(work).values()] == [WORKSPACE_SESSIONS]
    assert not claimed(work, SESSIONS - WORKSPACE_SESSIONS)
    add_messages(alice.workspace, 100)
    assert [*claimed(work, SESSIONS - WORKSPACE_SESSIONS).values()] == [SESSIONS - WORKSPACE_SESSIONS]


def test_large_messages_take_turns(alice, bob):
    add_messages(bob.workspace, 10, size=LARGE_BYTES)
    add_messages(alice.workspace, 1, size=LARGE_BYTES)
    work = ReceivedQueueWork()
    assert len(claimed(work) | claimed(work)) == 2


def test_the_share_of_a_message_to_several_workspaces_is_that_of_one(alice, receiving):
    make_route(alice.workspace)
    email = arrive()
    assert email.message.workspace_id == alice.workspace.id


def test_a_message_that_may_end_its_worker_is_read_alone(alice, bob):
    add_messages(bob.workspace, 20)
    work = ReceivedQueueWork()
    first = work.claim(4).jobs
    add_messages(alice.workspace, 1, attempts=2)
    # Those in flight end first, and none begin beside it.
    waiting = work.claim(4)
    assert (waiting.jobs, waiting.has_waiting) == ([], True)
    work.record([work.crash_result(job, ValueError()) for job in first])
    (alone,) = work.claim(4).jobs
    assert alone.claim.attempt == 3
    assert work.claim(4).jobs == []
    work.record([work.crash_result(alone, ValueError())])
    assert len(work.claim(4).jobs) == 4


def test_messages_that_may_end_their_worker_take_turns_with_others(alice, bob):
    add_messages(alice.workspace, 2, attempts=2)
    add_messages(bob.workspace, 8)
    work, attempts = ReceivedQueueWork(), []
    while jobs := work.claim(4).jobs:
        attempts.append([job.claim.attempt for job in jobs])
        work.record([work.crash_result(job, ValueError()) for job in jobs])
    assert attempts == [[1] * 4, [3], [1] * 4, [3]]


def test_a_renewal_does_not_shorten_the_pause_after_a_claim_alone(alice):
    add_messages(alice.workspace, 1, attempts=5)
    work = ReceivedQueueWork()
    (job,) = work.claim(4).jobs
    due_at = Message.objects.get().due_at
    assert work.renew([job.claim]) == [job.claim]
    assert Message.objects.get().due_at == due_at


def test_a_message_that_was_deleted_after_its_claim_is_left_out(alice, receiving, monkeypatch):
    make_route(alice.workspace)
    email = arrive()
    monkeypatch.setattr(received_work, "failpoint", lambda _: delete_email(email))
    assert ReceivedQueueWork().claim(SESSIONS).jobs == []


def test_a_claim_that_the_database_interrupts_frees_its_memory(alice, monkeypatch):
    add_messages(alice.workspace, 2, attempts=1)
    work = ReceivedQueueWork()
    monkeypatch.setattr(received_work.content, "open_together", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        work.claim(SESSIONS)
    monkeypatch.undo()
    assert not work.claim(SESSIONS).has_waiting


def test_a_result_that_the_database_refuses_frees_its_memory(alice, monkeypatch):
    add_messages(alice.workspace, 1)
    work = ReceivedQueueWork()
    (job,) = work.claim(SESSIONS).jobs
    monkeypatch.setattr(received_work, "record_readings", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        work.record([work.crash_result(job, ValueError())])
    monkeypatch.undo()
    assert not work.claim(SESSIONS).has_waiting
