"""Claims, leases, fences and recorded outcomes. Tests move rows into the past, never the clock."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.db.models import F
from django.utils import timezone

from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.lib.worker.lease_queue import FIRST, Cursor
from core.lib.worker.stages import Stage
from emails.models import Email, QueueEntry, Recipient
from emails.sending import queue
from emails.sending.outcomes import SendResult, record_results
from emails.sending.retries import delay_after
from emails.sending.scheduling import promote_due
from events.models import Event
from suppressions.models import Suppression
from tests.conftest import make_account, make_domain
from tests.emails.builders import (
    BOUNCED,
    LATER,
    OK,
    PARKED,
    UNKNOWN_USER,
    accept,
    claim_entries,
    counter_values,
    deliver,
    deliver_all,
    let_time_pass,
    make_ready,
)
from tests.plans import plan_of, prefer_indexes
from tests.rows import each

pytestmark = pytest.mark.django_db

SHARES = queue.WorkspaceShares(cap=1000, in_flight={})
BLOCKED = DeliveryOutcome(DeliveryStatus.BOUNCED, Reply(554, "5.7.1 listed"), "blocklisted")
BUILD_ERROR = DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(0, "An error of this service."), "internal_error")

DELIVERED = {"status.delivered": 1, "reached.delivered": 1, "rated.sent": 1}


def test_a_claimed_entry_is_not_claimed_again(workspace):
    accept(workspace, count=3)
    assert len(claim_entries(2)) == 2
    assert len(claim_entries()) == 1
    assert claim_entries() == []
    assert set(QueueEntry.objects.values_list("stage", "fence", "attempts")) == {(Stage.LEASED, 1, 1)}


def test_workspaces_share_a_claim_equally(workspace, bob):
    make_domain(bob.workspace, "bob.example")
    accept(workspace, count=50)
    accept(bob.workspace, count=3)
    claims = claim_entries(10)
    assert sum(email_claim.workspace_id == bob.workspace.id for email_claim in claims) == 3
    assert len(claims) <= 10


def test_the_cursor_cycles_through_all_workspaces():
    workspaces = [make_account(f"w{number}").workspace for number in range(5)]
    for workspace in workspaces:
        make_domain(workspace, f"{workspace.name}.example")
        accept(workspace, count=4)
    cursor = Cursor()
    served = [email_claim.workspace_id for _ in range(10) for email_claim in cursor.claim(2, SHARES)]
    assert sorted(served) == sorted([workspace.id for workspace in workspaces] * 4)


@each("limit", [2, 3, 4, 7])
def test_every_workspace_is_served_for_any_limit(limit):
    workspaces = [make_account(f"w{number}").workspace for number in range(3)]
    for workspace in workspaces:
        make_domain(workspace, f"{workspace.name}.example")
        accept(workspace, count=20)
    cursor = Cursor()
    served = {email_claim.workspace_id for _ in range(2) for email_claim in cursor.claim(limit, SHARES)}
    assert served == {workspace.id for workspace in workspaces}


def test_a_claim_reads_only_the_workspaces_it_serves():
    for number in range(12):
        workspace = make_account(f"w{number}").workspace
        make_domain(workspace, f"{workspace.name}.example")
        accept(workspace)
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + queue.CLAIM, SHARES.parameters(2, after=FIRST))
        ((plan,),) = cursor.fetchall()
    (found,) = re.findall(r"'Node Type': 'Recursive Union'.*?'Actual Rows': (\d+)", str(plan))
    assert int(found) <= 3


def test_claiming_from_one_workspace_takes_one_statement(workspace, django_assert_num_queries):
    accept(workspace, count=40)
    cursor = Cursor()
    assert len(cursor.claim(16, SHARES)) == 16
    with django_assert_num_queries(1):
        assert len(cursor.claim(16, SHARES)) == 16


def test_a_worker_with_a_wrong_clock_gives_up_nothing_early(workspace):
    accept(workspace)
    with time_machine.travel(timezone.now() + timedelta(days=30), tick=False):
        (email_claim,) = claim_entries()
        record_results([SendResult(email_claim, LATER)])
    assert Recipient.objects.get().state == "queued"
    assert QueueEntry.objects.get().stage == Stage.WAITING


def test_a_suspended_workspace_is_not_claimed_until_it_is_reinstated(workspace):
    accept(workspace)
    workspace.suspended_at = timezone.now()
    workspace.save(update_fields=["suspended_at"])
    assert claim_entries() == []
    workspace.suspended_at = None
    workspace.save(update_fields=["suspended_at"])
    assert len(claim_entries()) == 1


def test_a_delivery_deletes_the_queue_entry_and_adds_events(workspace):
    accept(workspace)
    deliver_all()
    email = Email.objects.get()
    assert not QueueEntry.objects.exists()
    assert (email.status, email.error_message, email.retry_count) == ("delivered", None, 0)
    assert email.sent_at is not None
    assert email.delivered_at is not None
    assert list(email.events.values_list("kind", flat=True)) == ["queued", "sent", "delivered"]
    assert counter_values() == {**DELIVERED, "recipients.accepted": 1, "recipients.completed": 1}


def test_a_permanent_refusal_is_a_bounce_with_a_reason(workspace):
    accept(workspace)
    deliver_all(BOUNCED)
    recipient, event = Recipient.objects.get(), Event.objects.last()
    assert (recipient.state, recipient.reply_code, recipient.enhanced_code) == ("bounced", 550, "5.1.1")
    assert Email.objects.get().error_message == "5.1.1 no such user"
    reply = {"code": 550, "enhancedCode": "5.1.1", "message": "5.1.1 no such user", "reason": "rejected"}
    assert event.payload == {"emailId": Email.objects.get().id, "to": "ada@example.com", **reply}
    assert counter_values() == dict.fromkeys(
        ("status.bounced", "reached.bounced", "recipients.accepted", "recipients.failed"), 1
    )


def test_a_deferral_is_retried_later(workspace):
    accept(workspace)
    deliver_all(LATER)
    row = QueueEntry.objects.get()
    assert row.stage == Stage.WAITING
    assert 50 < (row.due_at - timezone.now()).total_seconds() < 70
    assert (Email.objects.get().status, Email.objects.get().error_message) == ("queued", "4.7.1 try again")
    assert Event.objects.last().kind == "deferred"
    promote_due()
    assert claim_entries() == []
    let_time_pass()
    (second,) = claim_entries()
    assert (second.attempt, second.fence) == (2, 2)
    record_results([SendResult(second, OK)])
    email = Email.objects.get()
    assert (email.status, email.retry_count, email.error_message) == ("delivered", 1, None)


def test_an_email_past_its_maximum_age_fails(workspace):
    accept(workspace)
    QueueEntry.objects.update(since=F("since") - timedelta(hours=23, minutes=59, seconds=30))
    deliver_all(LATER)
    assert Recipient.objects.get().state == "failed"
    assert not QueueEntry.objects.exists()
    assert Event.objects.last().kind == "failed"
    assert counter_values()["recipients.failed"] == 1


def test_waits_follow_the_documented_schedule():
    minutes = [1, 3, 5, 10, 20, 40, 60, 120, 180, 240, 240, 240]
    for attempt, expected in enumerate(minutes, start=1):
        for _ in range(20):
            assert 0.85 * expected <= delay_after(attempt).total_seconds() / 60 <= 1.15 * expected


def test_an_expired_lease_adds_an_event_and_is_retried_immediately(workspace):
    accept(workspace)
    (lost,) = claim_entries()
    let_time_pass()
    event = Event.objects.last()
    assert (event.kind, event.payload["reason"]) == ("deferred", "worker_lost")
    assert "may have been delivered" in event.payload["message"]
    (again,) = claim_entries()
    assert again.fence == lost.fence + 1


def test_an_email_that_crashes_three_workers_fails(workspace):
    accept(workspace)
    for stage in (Stage.READY, Stage.WAITING):
        assert len(claim_entries()) == 1
        let_time_pass()
        assert QueueEntry.objects.get().stage == stage
        make_ready()
    assert len(claim_entries()) == 1
    let_time_pass()
    assert not QueueEntry.objects.exists()
    recipient = Recipient.objects.get()
    assert (recipient.state, recipient.reason) == ("failed", "worker_lost")
    assert list(Event.objects.values_list("kind", flat=True)) == ["queued", "deferred", "deferred", "failed"]


def test_an_outcome_resets_the_count_of_lost_workers(workspace):
    accept(workspace)
    for _ in range(4):
        claim_entries()
        let_time_pass()
        make_ready()
        deliver_all(LATER)
        make_ready()
    assert Recipient.objects.get().state == "queued"


def test_a_message_that_cannot_be_built_fails_the_third_time(workspace):
    accept(workspace)
    for expected in ("queued", "queued", "failed"):
        deliver_all(BUILD_ERROR)
        assert Recipient.objects.get().state == expected
        make_ready()


def test_parking_uses_no_attempt_and_backs_off(workspace):
    accept(workspace)
    for expected in (2, 4, 8, 16, 32, 60, 60):
        deliver_all(PARKED)
        row = QueueEntry.objects.get()
        assert (row.stage, row.attempts) == (Stage.WAITING, 0)
        assert expected - 2 < (row.due_at - timezone.now()).total_seconds() <= expected
        make_ready()
    assert list(Event.objects.values_list("kind", flat=True)) == ["queued"]
    deliver_all(LATER)
    assert (QueueEntry.objects.get().attempts, QueueEntry.objects.get().parked) == (1, 0)


def test_parking_ends_at_the_maximum_age(workspace):
    accept(workspace)
    QueueEntry.objects.update(since=F("since") - timedelta(hours=24))
    deliver_all(PARKED)
    recipient = Recipient.objects.get()
    assert (recipient.state, recipient.reason) == ("failed", "destination_full")


def test_a_released_claim_uses_no_attempt(workspace):
    accept(workspace)
    queue.release(claim_entries(), seconds=1)
    row = QueueEntry.objects.get()
    assert (row.stage, row.attempts, row.parked) == (Stage.WAITING, 0, 0)


def test_a_workspace_is_limited_to_its_share_of_sessions(workspace, bob):
    make_domain(bob.workspace, "bob.example")
    accept(workspace, count=20)
    assert len(claim_entries(20, cap=8)) == 8
    assert claim_entries(20, cap=8, in_flight={workspace.id: 8}) == []
    assert len(claim_entries(20, cap=8, in_flight={workspace.id: 6})) == 2
    accept(bob.workspace, count=3)
    claims = claim_entries(20, cap=8, in_flight={workspace.id: 8})
    assert {email_claim.workspace_id for email_claim in claims} == {bob.workspace.id}


def test_a_domain_that_does_not_exist_is_retried_after_five_minutes(workspace):
    accept(workspace)
    unsure = DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(0, "No such domain."), "bad_domain_unconfirmed")
    deliver_all(unsure)
    assert (QueueEntry.objects.get().due_at - timezone.now()).total_seconds() > 300


@each(("policy", "outcome", "is_blocked"), [
    ("recipient_fault", UNKNOWN_USER, True), ("recipient_fault", BLOCKED, False), ("every_bounce", BLOCKED, True),
    ("every_bounce", LATER, False), ("every_bounce", replace(UNKNOWN_USER, never_suppresses=True), False),
])  # fmt: skip
def test_a_bounce_suppresses_by_the_policy(workspace, settings, policy, outcome, is_blocked):
    settings.SUPPRESS_ON = policy
    accept(workspace, "Ada@example.com")
    deliver_all(outcome)
    rows = list(Suppression.objects.values_list("workspace_id", "email", "reason"))
    assert rows == ([(workspace.id, "Ada@example.com", "bounce")] if is_blocked else [])


def test_a_worker_that_lost_its_lease_changes_nothing(workspace):
    accept(workspace)
    (lost,) = claim_entries()
    let_time_pass()
    (again,) = claim_entries()
    record_results([SendResult(lost, BOUNCED)])
    assert Recipient.objects.get().state == "queued"
    assert "bounced" not in Event.objects.values_list("kind", flat=True)
    record_results([SendResult(again, OK)])
    record_results([SendResult(again, BOUNCED)])
    assert Recipient.objects.get().state == "delivered"
    assert counter_values() == {**DELIVERED, "recipients.accepted": 1, "recipients.completed": 1}


def test_a_renewed_lease_does_not_expire_and_a_lost_one_is_not_renewed(workspace):
    accept(workspace)
    (email_claim,) = claim_entries()
    QueueEntry.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    assert queue.renew([email_claim]) == [email_claim]
    promote_due()
    assert claim_entries() == []
    let_time_pass()
    assert queue.renew([email_claim]) == []
    assert QueueEntry.objects.get().stage == Stage.READY
    (again,) = claim_entries()
    assert queue.renew([again, email_claim]) == [again]


@each("order", [1, -1])
def test_results_of_a_lost_and_a_valid_claim_may_be_recorded_together(workspace, order):
    """A machine slept for longer than its leases: it claims its own rows again while their jobs still wait."""
    accept(workspace)
    (lost,) = claim_entries()
    let_time_pass()
    (again,) = claim_entries()
    valid = SendResult(again, OK)
    assert record_results([SendResult(lost, LATER), valid][::order]) == [valid]
    assert Recipient.objects.get().state == "delivered"


@each(("outcomes", "status", "error"), [
    ([OK, OK], "delivered", None), ([OK, BOUNCED], "delivered", "5.1.1 no such user"),
    ([BOUNCED, BOUNCED], "bounced", "5.1.1 no such user"), ([OK, LATER], "delivered", "4.7.1 try again"),
    ([BOUNCED, LATER], "queued", "4.7.1 try again"),
])  # fmt: skip
def test_the_status_of_an_email_is_rolled_up_from_its_recipients(workspace, outcomes, status, error):
    accept(workspace, "a@example.com", "b@example.com")
    deliver(*outcomes)
    email = Email.objects.get()
    assert (email.status, email.error_message is not None) == (status, error is not None)


def test_an_open_before_the_result_is_kept(workspace):
    """The pixel may load before the worker has recorded that the message was accepted."""
    accept(workspace)
    email_claims = claim_entries()
    Recipient.objects.update(state="opened", opened_at=timezone.now())
    record_results([SendResult(one, OK) for one in email_claims])
    recipient = Recipient.objects.get()
    assert (recipient.state, Email.objects.get().status) == ("opened", "opened")
    assert recipient.delivered_at is not None


def test_recording_a_batch_takes_a_fixed_number_of_statements(workspace, django_assert_max_num_queries):
    accept(workspace, count=50)
    claims = claim_entries()
    with django_assert_max_num_queries(12):
        record_results(
            [
                SendResult(email_claim, outcome)
                for email_claim, outcome in zip(claims, [OK, LATER, BOUNCED, OK, OK] * 10, strict=True)
            ]
        )
    assert Email.objects.filter(status="delivered").count() == 30


def test_the_claim_uses_the_indexes(workspace):
    """A claim neither scans nor sorts the waiting entries."""
    prefer_indexes()
    plan = plan_of(queue.CLAIM, SHARES.parameters(100, after=FIRST))
    assert "pending_ready" in plan
    assert "Seq Scan on emails_pending" not in plan
