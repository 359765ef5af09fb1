"""Emails of a paused stream are held in the queue, however long, and sent when the stream is resumed."""

from datetime import timedelta

import pytest
from django.db.models import F

from core.delivery.transports.relay import inbox_transport
from core.lib.worker.stages import Stage
from core.workspaces.models import AuditEntry
from emails.models import Email, QueueEntry
from emails.queue_stats import stats_cache
from emails.sending.emails_work import EmailQueueWork
from emails.sending.retries import max_age
from emails.sending.scheduling import promote_due
from emails.sending.sending_checks import BATCH_SIZE, pause_sending
from emails.upkeep.reconcile import find_differences
from streams.errors import InvalidStream
from streams.models import Stream
from streams.services import pause_stream, resume_stream
from tests.conftest import Api, later, make_account, make_domain
from tests.emails.builders import LATER, accept, deliver, make_due, send

pytestmark = pytest.mark.django_db
REASON = "40 of 1,000 recipients complained."


@pytest.fixture
def sending(monkeypatch) -> EmailQueueWork:
    """Return queue work that claims; nothing is sent."""
    monkeypatch.setattr("emails.sending.emails_work.PROMOTE_EVERY_SECONDS", 0)
    return EmailQueueWork(inbox_transport(port=1, ehlo_name="localhost"), sessions=10)


@pytest.fixture(autouse=True)
def newsletter(api: Api, alice) -> Stream:
    api.post("/streams", {"id": "newsletter", "name": "Newsletter", "kind": "bulk"})
    return Stream.objects.get()


def stages() -> list[int]:
    return sorted(QueueEntry.objects.values_list("stage", flat=True))


def queue_stats(api: Api) -> dict[str, int]:
    stats_cache.clear()
    stats = api.get("/queue/stats").json()
    return {name: stats[name] for name in ("waiting", "active", "delayed", "paused")}


def pause(alice) -> None:
    pause_stream(alice.workspace, "newsletter", reason=REASON)


def resume(alice) -> None:
    resume_stream(alice.workspace, "newsletter")


def test_only_the_paused_stream_is_held(api: Api, alice, sending):
    held = send(api, stream="newsletter")
    sent = send(api)
    pause(alice)
    assert [job.email_id for job in sending.claim(10).jobs] == [sent]
    entry = QueueEntry.objects.get(recipient__email=held)
    assert (entry.stage, entry.attempts, entry.rank) == (Stage.HELD, 0, Stream.objects.get().number)
    assert sending.claim(10).jobs == []
    assert queue_stats(api) == {"waiting": 0, "active": 1, "delayed": 1, "paused": 0}
    assert find_differences(alice.workspace.id) == []


def test_one_claim_holds_the_next_thousand(api: Api, alice, sending):
    accept(alice.workspace, count=BATCH_SIZE + 5, stream="newsletter")
    pause(alice)
    sending.claim(2)
    assert stages() == [Stage.READY] * 3 + [Stage.HELD] * (BATCH_SIZE + 2)
    sending.claim(2)
    assert stages() == [Stage.HELD] * (BATCH_SIZE + 5)
    assert queue_stats(api)["delayed"] == BATCH_SIZE + 5
    resume(alice)
    promote_due()
    promote_due()
    assert stages() == [Stage.READY] * (BATCH_SIZE + 5)
    assert queue_stats(api) == {"waiting": BATCH_SIZE + 5, "active": 0, "delayed": 0, "paused": 0}
    assert find_differences(alice.workspace.id) == []


def test_a_resumed_stream_is_sent_at_once_with_its_priority(api: Api, alice, sending):
    email_id = send(api, stream="newsletter")
    pause(alice)
    sending.claim(10)
    resume(alice)
    assert [job.email_id for job in sending.claim(10).jobs] == [email_id]
    assert QueueEntry.objects.get().rank == Stream.objects.get().rank


def test_the_time_held_does_not_count_towards_the_maximum_age(api: Api, alice, sending):
    send(api, stream="newsletter")
    pause(alice)
    sending.claim(10)
    long_ago = F("due_at") - 3 * max_age()
    QueueEntry.objects.update(due_at=long_ago, since=long_ago)
    resume(alice)
    promote_due()
    deliver(LATER)
    assert Email.objects.get().status == "queued"
    # The age goes on from where it was.
    QueueEntry.objects.update(stage=Stage.READY, since=F("since") - max_age())
    deliver(LATER)
    assert Email.objects.get().status == "failed"


def test_an_old_email_of_a_paused_stream_does_not_fail(api: Api, alice, sending):
    send(api, stream="newsletter")
    QueueEntry.objects.update(since=F("since") - 3 * max_age())
    pause(alice)
    sending.claim(10)
    assert (Email.objects.get().status, stages()) == ("queued", [Stage.HELD])


def test_retries_and_scheduled_emails_are_held_when_they_are_due(api: Api, alice, sending):
    send(api, stream="newsletter")
    deliver(LATER)
    send(api, stream="newsletter", scheduledFor=later(hours=1))
    pause(alice)
    sending.claim(10)
    assert stages() == [Stage.WAITING, Stage.SCHEDULED]
    make_due()
    QueueEntry.objects.filter(stage=Stage.WAITING).update(due_at=F("due_at") - timedelta(days=1))
    sending.claim(10)
    assert stages() == [Stage.HELD, Stage.HELD]
    assert sorted(QueueEntry.objects.values_list("attempts", flat=True)) == [0, 1]
    assert find_differences(alice.workspace.id) == []


def test_streams_with_the_same_id_are_held_apart(api: Api, alice, bob, sending):
    make_domain(bob.workspace, "bob.example")
    Stream.objects.create(workspace=bob.workspace, slug="newsletter", number=1, name="News", kind="bulk")
    for account in (alice, bob):
        accept(account.workspace, stream="newsletter")
        pause(account)
    sending.claim(10)
    resume(bob)
    promote_due()
    held = QueueEntry.objects.get(stage=Stage.HELD)
    assert held.workspace_id == alice.workspace.id
    assert QueueEntry.objects.get(stage=Stage.READY).workspace_id == bob.workspace.id


def test_a_held_email_can_be_cancelled_while_all_sending_is_paused(api: Api, alice, sending):
    email_id = send(api, stream="newsletter")
    pause(alice)
    sending.claim(10)
    assert api.delete(f"/emails/{email_id}").status_code == 409
    pause_sending()
    assert api.delete(f"/emails/{email_id}").status_code == 200
    assert queue_stats(api) == {"waiting": 0, "active": 0, "delayed": 0, "paused": 0}
    assert find_differences(alice.workspace.id) == []


def test_pausing_and_resuming_are_recorded_once(api: Api, alice):
    for _ in range(2):
        pause(alice)
    stream = api.get("/streams/newsletter").json()
    assert (bool(stream["pausedAt"]), stream["pausedReason"]) == (True, REASON)
    refused = api.post("/emails/send", {"stream": "newsletter"})
    for _ in range(2):
        resume(alice)
    stream = api.get("/streams/newsletter").json()
    assert (stream["pausedAt"], stream["pausedReason"]) == (None, "")
    assert refused.status_code == 422
    actions = AuditEntry.objects.filter(act__startswith="stream_").order_by("id").values_list("act", "about")
    assert list(actions)[1:] == [("stream_paused", f"newsletter: {REASON}"), ("stream_resumed", "newsletter")]


def test_main_cannot_be_paused(alice):
    with pytest.raises(InvalidStream):
        pause_stream(alice.workspace, "main", reason=REASON)


def test_streams_of_other_workspaces_are_not_touched(alice):
    other = make_account("other").workspace
    Stream.objects.create(workspace=other, slug="newsletter", number=1, name="News", kind="bulk")
    pause(alice)
    assert Stream.objects.get(workspace=other).paused_at is None
