"""Claims of queue entries that were never performed: no attempt, no event, no crash that counts."""

import pytest

from core.lib.worker.stages import Stage
from emails.models import QueueEntry
from emails.sending import emails_work, queue
from emails.sending.emails_work import EmailQueueWork
from emails.sending.outcomes import SendResult
from events.models import Event
from tests.core.lib.worker.outages import expect_outage, lose_connection
from tests.emails.builders import LATER, accept, claim_entries, let_time_pass
from tests.rows import each

pytestmark = pytest.mark.django_db


def entries() -> list[tuple]:
    return [*QueueEntry.objects.values_list("stage", "attempts", "lost", "handed_to")]


@pytest.mark.django_db(transaction=True)
def test_an_outage_while_send_jobs_are_loaded_leaves_no_note_and_uses_no_attempt(workspace, monkeypatch):
    accept(workspace, count=3)
    work = EmailQueueWork(None, sessions=8)
    with monkeypatch.context() as patched:
        patched.setattr(emails_work, "failpoint", lose_connection)
        for _ in range(4):
            with expect_outage():
                work.claim(8)
            work.unused.give_back()
            assert entries() == [(Stage.READY, 0, 0, None)] * 3
    let_time_pass()
    assert {*Event.objects.values_list("kind", flat=True)} == {"queued"}
    assert len(work.claim(8).jobs) == 3


def test_a_claim_that_is_given_back_after_another_one_changes_only_the_count_of_lost_claims(workspace):
    accept(workspace)
    (first,) = claim_entries()
    let_time_pass()
    (second,) = claim_entries()
    queue.give_back([first])
    assert entries() == [(Stage.LEASED, 2, 0, "default")]
    assert queue.renew([second]) == [second]


@pytest.mark.parametrize("is_claimed_again", [True, False])
def test_a_process_that_was_stopped_for_longer_than_its_lease_is_no_crash(workspace, is_claimed_again):
    """The note remains: the message may have been delivered twice."""
    accept(workspace)
    work = EmailQueueWork(None, sessions=8)
    (job,) = work.claim(8).jobs
    let_time_pass()
    if is_claimed_again:
        claim_entries()
    work.record([SendResult(job.claim, LATER)])
    assert QueueEntry.objects.get().lost == 1
    work.unused.give_back()
    assert QueueEntry.objects.get().lost == 0
    assert [*Event.objects.values_list("kind", flat=True)] == ["queued", "deferred"]


@each(("handed_to", "kept"), [(None, None), ("", None), ("relay-2", "relay-2")])
def test_an_entry_that_is_given_back_keeps_the_transport_of_an_earlier_attempt_only(workspace, handed_to, kept):
    accept(workspace)
    QueueEntry.objects.update(handed_to=handed_to)
    (claim,) = claim_entries()
    if not handed_to:
        QueueEntry.objects.update(handed_to="relay-1")
    queue.give_back([claim])
    assert entries() == [(Stage.READY, 0, 0, kept)]
