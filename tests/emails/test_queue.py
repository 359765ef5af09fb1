"""Claims, leases, fences and what is recorded of them; rows are moved into the past, never the clock."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.db.models import F
from django.utils import timezone

from analytics import tally
from analytics.models import Tally
from api.addresses import parse_address
from delivery.replies import Outcome, Reply, Verdict
from emails import queue
from emails.accept import Draft, send_email
from emails.models import Email, Event, Pending, Recipient
from emails.outcomes import Result, record
from emails.retries import delay_after
from emails.scheduling import promote_due
from tests.conftest import make_account, make_domain

pytestmark = pytest.mark.django_db

START = UUID(int=0)
OK = Outcome(Verdict.DELIVERED, Reply(250, "2.0.0 ok"))
LATER = Outcome(Verdict.DEFERRED, Reply(451, "4.7.1 try again"), "temporary")
NEVER = Outcome(Verdict.BOUNCED, Reply(550, "5.1.1 no such user"), "rejected")

DELIVERED = {"status.delivered": 1, "reached.delivered": 1}


def accept(workspace, *to, count=1):
    draft = Draft(
        sender=parse_address(f"x@{workspace.name}.example"),
        to=tuple(parse_address(address) for address in to or ("ada@example.com",)),
        subject="s",
        html="<p>",
    )
    for _ in range(count):
        send_email(workspace, draft=draft, key=None)


@pytest.fixture
def workspace(alice):
    make_domain(alice.workspace, "alice.example")
    return alice.workspace


def claim(limit=100, after=START):
    return queue.claim(limit, after=after)


def counters():
    while tally.fold():
        pass
    counted = Tally.objects.exclude(workspace_id=tally.SERVICE)
    return {key: count for key, count in counted.values_list("key", "count") if count}


def test_a_claimed_row_is_nobody_elses(workspace):
    accept(workspace, count=3)
    assert len(claim(2)) == 2
    assert len(claim()) == 1
    assert claim() == []
    assert set(Pending.objects.values_list("stage", "fence", "attempts")) == {(Pending.Stage.LEASED, 1, 1)}


def test_workspaces_share_a_claim_equally(workspace, bob):
    make_domain(bob.workspace, "bob.example")
    accept(workspace, count=50)
    accept(bob.workspace, count=3)
    claims = claim(10)
    assert sum(held.workspace_id == bob.workspace.id for held in claims) == 3
    assert len(claims) <= 10


def test_the_cursor_goes_round_all_workspaces():
    workspaces = [make_account(f"w{number}").workspace for number in range(5)]
    for workspace in workspaces:
        make_domain(workspace, f"{workspace.name}.example")
        accept(workspace, count=4)
    cursor = queue.Cursor()
    served = [held.workspace_id for _ in range(10) for held in cursor.claim(2)]
    assert sorted(served) == sorted([workspace.id for workspace in workspaces] * 4)


def test_a_suspended_workspaces_mail_is_held_and_goes_on_later(workspace):
    accept(workspace)
    workspace.suspended_at = timezone.now()
    workspace.save(update_fields=["suspended_at"])
    assert claim() == []
    workspace.suspended_at = None
    workspace.save(update_fields=["suspended_at"])
    assert len(claim()) == 1


def test_a_delivery_ends_the_queue_row_and_tells_the_story(workspace):
    accept(workspace)
    record([Result(held, OK) for held in claim()])
    email = Email.objects.get()
    assert not Pending.objects.exists()
    assert (email.status, email.error_message, email.retry_count) == ("delivered", None, 0)
    assert email.sent_at is not None
    assert email.delivered_at is not None
    assert list(email.events.values_list("kind", flat=True)) == ["queued", "sent", "delivered"]
    assert counters() == {**DELIVERED, "recipients.accepted": 1, "recipients.completed": 1}


def test_a_refusal_for_good_is_a_bounce_with_its_reason(workspace):
    accept(workspace)
    record([Result(held, NEVER) for held in claim()])
    recipient, event = Recipient.objects.get(), Event.objects.last()
    assert (recipient.state, recipient.reply_code, recipient.enhanced_code) == ("bounced", 550, "5.1.1")
    assert Email.objects.get().error_message == "5.1.1 no such user"
    assert event.payload == {
        "emailId": Email.objects.get().id,
        "to": "ada@example.com",
        "code": 550,
        "enhancedCode": "5.1.1",
        "message": "5.1.1 no such user",
        "reason": "rejected",
    }
    assert counters() == {"status.bounced": 1, "reached.bounced": 1, "recipients.accepted": 1, "recipients.failed": 1}


def test_a_deferral_waits_and_is_tried_again(workspace):
    accept(workspace)
    record([Result(held, LATER) for held in claim()])
    row = Pending.objects.get()
    assert row.stage == Pending.Stage.WAITING
    assert 50 < (row.due_at - timezone.now()).total_seconds() < 70
    assert (Email.objects.get().status, Email.objects.get().error_message) == ("queued", "4.7.1 try again")
    assert Event.objects.last().kind == "deferred"
    promote_due()
    assert claim() == []
    Pending.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    promote_due()
    (second,) = claim()
    assert (second.attempt, second.fence) == (2, 2)
    record([Result(second, OK)])
    email = Email.objects.get()
    assert (email.status, email.retry_count, email.error_message) == ("delivered", 1, None)


def test_what_cannot_be_delivered_in_time_fails(workspace):
    accept(workspace)
    Pending.objects.update(since=F("since") - timedelta(hours=23, minutes=59, seconds=30))
    record([Result(held, LATER) for held in claim()])
    assert Recipient.objects.get().state == "failed"
    assert not Pending.objects.exists()
    assert Event.objects.last().kind == "failed"
    assert counters()["recipients.failed"] == 1


def test_waits_follow_the_printed_schedule():
    minutes = [1, 3, 5, 10, 20, 40, 60, 120, 180, 240, 240, 240]
    for attempt, expected in enumerate(minutes, start=1):
        for _ in range(20):
            assert 0.85 * expected <= delay_after(attempt).total_seconds() / 60 <= 1.15 * expected


def test_an_expired_lease_is_told_and_goes_on_at_once(workspace):
    accept(workspace)
    (lost,) = claim()
    Pending.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    promote_due()
    event = Event.objects.last()
    assert (event.kind, event.payload["reason"]) == ("deferred", "worker_lost")
    assert "may have been delivered" in event.payload["message"]
    (again,) = claim()
    assert again.fence == lost.fence + 1


def test_a_worker_that_lost_its_lease_changes_nothing(workspace):
    accept(workspace)
    (lost,) = claim()
    Pending.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    promote_due()
    (again,) = claim()
    record([Result(lost, NEVER)])
    assert Recipient.objects.get().state == "queued"
    assert "bounced" not in Event.objects.values_list("kind", flat=True)
    record([Result(again, OK)])
    record([Result(again, NEVER)])
    assert Recipient.objects.get().state == "delivered"
    assert counters() == {**DELIVERED, "recipients.accepted": 1, "recipients.completed": 1}


def test_a_renewed_lease_does_not_expire_and_a_lost_one_is_not_renewed(workspace):
    accept(workspace)
    (held,) = claim()
    Pending.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    queue.renew([held])
    promote_due()
    assert claim() == []
    Pending.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    promote_due()
    queue.renew([held])
    assert Pending.objects.get().stage == Pending.Stage.READY


@pytest.mark.parametrize(
    ("outcomes", "status", "error"),
    [
        ([OK, OK], "delivered", None),
        ([OK, NEVER], "delivered", "5.1.1 no such user"),
        ([NEVER, NEVER], "bounced", "5.1.1 no such user"),
        ([OK, LATER], "delivered", "4.7.1 try again"),
        ([NEVER, LATER], "queued", "4.7.1 try again"),
    ],
)
def test_an_emails_status_is_derived_from_its_recipients(workspace, outcomes, status, error):
    accept(workspace, "a@example.com", "b@example.com")
    record([Result(held, outcome) for held, outcome in zip(claim(), outcomes, strict=True)])
    email = Email.objects.get()
    assert (email.status, email.error_message is not None) == (status, error is not None)


def test_an_open_before_the_result_is_kept(workspace):
    """The pixel may load before the worker has written down that the mail was accepted."""
    accept(workspace)
    held = claim()
    Recipient.objects.update(state="opened", opened_at=timezone.now())
    record([Result(one, OK) for one in held])
    recipient = Recipient.objects.get()
    assert (recipient.state, Email.objects.get().status) == ("opened", "opened")
    assert recipient.delivered_at is not None


def test_recording_a_batch_takes_a_fixed_number_of_statements(workspace, django_assert_max_num_queries):
    accept(workspace, count=50)
    claims = claim()
    with django_assert_max_num_queries(11):
        record([Result(held, outcome) for held, outcome in zip(claims, [OK, LATER, NEVER, OK, OK] * 10, strict=True)])
    assert Email.objects.filter(status="delivered").count() == 30


def test_the_claim_reads_the_indexes(workspace):
    """Neither a scan nor a sort of what is waiting stands between a worker and its work."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN " + queue.CLAIM, {"limit": 100, "after": START, "lease": 60})
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "pending_ready" in plan
    assert "Seq Scan on emails_pending" not in plan
