"""Claims, leases, fences and what is recorded of them; rows are moved into the past, never the clock."""

import re
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
import time_machine
from django.db import connection
from django.db.models import F
from django.utils import timezone

from analytics import counters
from analytics.models import Tally
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from emails.accept.services import Draft, send_email
from emails.models import Email, Event, Pending, Recipient
from emails.sending import queue
from emails.sending.outcomes import Result, record
from emails.sending.retries import delay_after
from emails.sending.scheduling import promote_due
from lib.email_addresses import parse_address
from suppressions.models import Suppression
from tests.conftest import make_account, make_domain

pytestmark = pytest.mark.django_db

START = UUID(int=0)
OK = DeliveryOutcome(DeliveryStatus.DELIVERED, Reply(250, "2.0.0 ok"))
LATER = DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(451, "4.7.1 try again"), "temporary")
NEVER = DeliveryOutcome(DeliveryStatus.BOUNCED, Reply(550, "5.1.1 no such user"), "rejected")
UNKNOWN = DeliveryOutcome(
    DeliveryStatus.BOUNCED, Reply(550, "5.1.1 no such user"), "unknown_user", is_recipient_fault=True
)
BLOCKED = DeliveryOutcome(DeliveryStatus.BOUNCED, Reply(554, "5.7.1 listed"), "blocklisted")
NO_ROOM = DeliveryOutcome(DeliveryStatus.PARKED, Reply(0, "All connections are in use."), "destination_full")
OUR_FAULT = DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(0, "An error of this service."), "internal_error")

DELIVERED = {"status.delivered": 1, "reached.delivered": 1, "rated.sent": 1}


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


def counter_values():
    while counters.fold():
        pass
    counted = Tally.objects.exclude(workspace_id=counters.SERVICE)
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


@pytest.mark.parametrize("limit", [2, 3, 4, 7])
def test_no_workspace_is_left_out_however_the_shares_come_out(limit):
    workspaces = [make_account(f"w{number}").workspace for number in range(3)]
    for workspace in workspaces:
        make_domain(workspace, f"{workspace.name}.example")
        accept(workspace, count=20)
    cursor = queue.Cursor()
    served = {held.workspace_id for _ in range(2) for held in cursor.claim(limit)}
    assert served == {workspace.id for workspace in workspaces}


def test_a_claim_finds_no_more_workspaces_than_it_serves():
    for number in range(12):
        workspace = make_account(f"w{number}").workspace
        make_domain(workspace, f"{workspace.name}.example")
        accept(workspace)
    with connection.cursor() as cursor:
        values = queue.claim_values(2, after=START, cap=None, busy={})
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + queue.CLAIM, values)
        ((plan,),) = cursor.fetchall()
    (found,) = re.findall(r"'Node Type': 'Recursive Union'.*?'Actual Rows': (\d+)", str(plan))
    assert int(found) <= 3


def test_a_single_workspace_is_claimed_from_by_one_statement(workspace, django_assert_num_queries):
    accept(workspace, count=40)
    cursor = queue.Cursor()
    assert len(cursor.claim(16)) == 16
    with django_assert_num_queries(1):
        assert len(cursor.claim(16)) == 16


def test_a_worker_whose_clock_is_wrong_gives_nothing_up_early(workspace):
    accept(workspace)
    with time_machine.travel(timezone.now() + timedelta(days=30), tick=False):
        (held,) = claim()
        record([Result(held, LATER)])
    assert Recipient.objects.get().state == "queued"
    assert Pending.objects.get().stage == Pending.Stage.WAITING


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
    assert counter_values() == {**DELIVERED, "recipients.accepted": 1, "recipients.completed": 1}


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
    assert counter_values() == {
        "status.bounced": 1,
        "reached.bounced": 1,
        "recipients.accepted": 1,
        "recipients.failed": 1,
    }


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
    assert counter_values()["recipients.failed"] == 1


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


def expire_leases():
    Pending.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    promote_due()


def test_what_ends_three_workers_is_given_up(workspace):
    accept(workspace)
    for stage in (Pending.Stage.READY, Pending.Stage.WAITING):
        assert len(claim()) == 1
        expire_leases()
        assert Pending.objects.get().stage == stage
        Pending.objects.update(stage=Pending.Stage.READY)
    assert len(claim()) == 1
    expire_leases()
    assert not Pending.objects.exists()
    recipient = Recipient.objects.get()
    assert (recipient.state, recipient.reason) == ("failed", "worker_lost")
    assert list(Event.objects.values_list("kind", flat=True)) == ["queued", "deferred", "deferred", "failed"]


def test_an_outcome_between_two_dead_workers_clears_the_suspicion(workspace):
    accept(workspace)
    for _ in range(4):
        claim()
        expire_leases()
        Pending.objects.update(stage=Pending.Stage.READY)
        record([Result(held, LATER) for held in claim()])
        Pending.objects.update(stage=Pending.Stage.READY)
    assert Recipient.objects.get().state == "queued"


def test_a_message_that_we_cannot_make_fails_the_third_time(workspace):
    accept(workspace)
    for expected in ("queued", "queued", "failed"):
        record([Result(held, OUR_FAULT) for held in claim()])
        assert Recipient.objects.get().state == expected
        Pending.objects.update(stage=Pending.Stage.READY)


def test_parking_uses_no_attempt_and_asks_less_and_less_often(workspace):
    accept(workspace)
    for expected in (2, 4, 8, 16, 32, 60, 60):
        record([Result(held, NO_ROOM) for held in claim()])
        row = Pending.objects.get()
        assert (row.stage, row.attempts) == (Pending.Stage.WAITING, 0)
        assert expected - 2 < (row.due_at - timezone.now()).total_seconds() <= expected
        Pending.objects.update(stage=Pending.Stage.READY)
    assert list(Event.objects.values_list("kind", flat=True)) == ["queued"]
    record([Result(held, LATER) for held in claim()])
    assert (Pending.objects.get().attempts, Pending.objects.get().parked) == (1, 0)


def test_nothing_is_parked_for_longer_than_mail_may_wait(workspace):
    accept(workspace)
    Pending.objects.update(since=F("since") - timedelta(hours=24))
    record([Result(held, NO_ROOM) for held in claim()])
    recipient = Recipient.objects.get()
    assert (recipient.state, recipient.reason) == ("failed", "destination_full")


def test_what_is_put_back_uses_no_attempt(workspace):
    accept(workspace)
    queue.put_back(claim(), seconds=1)
    row = Pending.objects.get()
    assert (row.stage, row.attempts, row.parked) == (Pending.Stage.WAITING, 0, 0)


def test_a_workspace_gets_no_more_than_its_part_of_the_sessions(workspace, bob):
    make_domain(bob.workspace, "bob.example")
    accept(workspace, count=20)
    assert len(queue.claim(20, after=START, cap=8)) == 8
    assert queue.claim(20, after=START, cap=8, busy={workspace.id: 8}) == []
    assert len(queue.claim(20, after=START, cap=8, busy={workspace.id: 6})) == 2
    accept(bob.workspace, count=3)
    claims = queue.claim(20, after=START, cap=8, busy={workspace.id: 8})
    assert {held.workspace_id for held in claims} == {bob.workspace.id}


def test_a_name_that_does_not_exist_is_asked_for_again_after_five_minutes(workspace):
    accept(workspace)
    unsure = DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(0, "No such domain."), "bad_domain_unconfirmed")
    record([Result(held, unsure) for held in claim()])
    assert (Pending.objects.get().due_at - timezone.now()).total_seconds() > 300


@pytest.mark.parametrize(
    ("policy", "outcome", "is_blocked"),
    [
        ("recipient_fault", UNKNOWN, True),
        ("recipient_fault", BLOCKED, False),
        ("every_bounce", BLOCKED, True),
        ("every_bounce", LATER, False),
        ("every_bounce", replace(UNKNOWN, never_suppresses=True), False),
    ],
)
def test_a_bounce_suppresses_by_the_policy(workspace, settings, policy, outcome, is_blocked):
    settings.SUPPRESS_ON = policy
    accept(workspace, "Ada@example.com")
    record([Result(held, outcome) for held in claim()])
    rows = list(Suppression.objects.values_list("workspace_id", "email", "reason"))
    assert rows == ([(workspace.id, "Ada@example.com", "bounce")] if is_blocked else [])


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
    assert counter_values() == {**DELIVERED, "recipients.accepted": 1, "recipients.completed": 1}


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
    with django_assert_max_num_queries(12):
        record([Result(held, outcome) for held, outcome in zip(claims, [OK, LATER, NEVER, OK, OK] * 10, strict=True)])
    assert Email.objects.filter(status="delivered").count() == 30


def test_the_claim_reads_the_indexes(workspace):
    """Neither a scan nor a sort of what is waiting stands between a worker and its work."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN " + queue.CLAIM, queue.claim_values(100, after=START, cap=None, busy={}))
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "pending_ready" in plan
    assert "Seq Scan on emails_pending" not in plan
