"""Reports change a recipient along the transition table, once, in any order."""

import itertools

import pytest

from core.lib.ids import new_id
from core.lib.worker.stages import Stage
from emails.feedback.reports import RecordResult, ReportedEvent, record_reports
from emails.models import Email, QueueEntry, Recipient
from emails.sending.outcomes import SendResult, record_results
from events.kinds import EventKind
from events.models import Event
from suppressions.models import Suppression
from tests.emails.builders import OK, SENT, counter_values, event_kinds
from tests.interfaces.inbound.fixtures import claimed_recipient, sent_recipient
from tests.plans import plan_of, prefer_indexes
from tests.rows import each

pytestmark = pytest.mark.django_db

HARD = {"code": 550, "enhancedCode": "5.1.1", "message": "No such user", "reason": "unknown_user"}
SPAM = {"code": 554, "enhancedCode": "5.7.1", "message": "Looks like spam", "reason": "spam"}
GIVEN_UP = {"code": 451, "enhancedCode": "4.4.1", "message": "No answer", "reason": "network"}
Kind = EventKind


def report_event(recipient, kind, details=None, *, fault=False):
    return record_reports([ReportedEvent(recipient.id, kind, details or {}, is_recipient_fault=fault)])


@each("outcome", [SENT, OK])
def test_a_bounce_after_the_250_is_a_bounce(workspace, outcome):
    recipient = sent_recipient(workspace, outcome=outcome)
    assert report_event(recipient, Kind.BOUNCED, HARD, fault=True) == [RecordResult.NEW]
    recipient.refresh_from_db()
    email = Email.objects.get()
    assert (recipient.state, email.status, email.error_message) == ("bounced", "bounced", "No such user")
    assert (recipient.reply_code, recipient.enhanced_code, recipient.reason) == (550, "5.1.1", "unknown_user")
    assert recipient.bounced_at == email.bounced_at
    assert event_kinds()[-1] == "bounced"
    assert Event.objects.exclude(email=None).last().payload == {"emailId": email.id, "to": "ada@example.com", **HARD}
    assert Suppression.objects.get().reason == "bounce"
    assert counter_values()["recipients.failed"] == 1
    assert "recipients.completed" not in counter_values()


def test_the_same_report_twice_is_one_event(workspace):
    recipient = sent_recipient(workspace)
    assert report_event(recipient, Kind.BOUNCED, HARD, fault=True) == [RecordResult.NEW]
    assert report_event(recipient, Kind.BOUNCED, HARD, fault=True) == [RecordResult.REPEATED]
    twice = [ReportedEvent(recipient.id, Kind.COMPLAINED)] * 2
    assert record_reports(twice) == [RecordResult.NEW, RecordResult.REPEATED]
    assert event_kinds() == ["queued", "sent", "bounced", "complained"]
    assert Suppression.objects.count() == 1


def test_a_bounce_recorded_before_the_250_has_the_same_result(workspace):
    recipient, claim = claimed_recipient(workspace)
    report_event(recipient, Kind.BOUNCED, HARD, fault=True)
    record_results([SendResult(claim, SENT)])
    recipient.refresh_from_db()
    assert recipient.state == "bounced"
    assert recipient.sent_at is not None
    assert event_kinds() == ["queued", "sent", "bounced"]
    assert not QueueEntry.objects.exists()
    assert Suppression.objects.exists()
    assert counter_values() == {
        "status.bounced": 1,
        "reached.bounced": 1,
        "recipients.accepted": 1,
        "recipients.failed": 1,
        "rated.sent": 1,
        "rated.bounced": 1,
    }


def test_a_delivery_report_ends_the_retries_of_a_delivered_message(workspace):
    recipient, _ = claimed_recipient(workspace)
    QueueEntry.objects.update(stage=Stage.WAITING)
    report_event(recipient, Kind.DELIVERED)
    recipient.refresh_from_db()
    assert recipient.state == "delivered"
    assert event_kinds() == ["queued", "sent", "delivered"]
    assert not QueueEntry.objects.exists()
    assert counter_values()["recipients.completed"] == 1


@each(("before", "kind", "after"), [
    ("sent", Kind.BOUNCED, "bounced"), ("delivered", Kind.BOUNCED, "bounced"), ("opened", Kind.BOUNCED, "opened"),
    ("clicked", Kind.BOUNCED, "clicked"), ("failed", Kind.BOUNCED, "failed"), ("cancelled", Kind.BOUNCED, "cancelled"),
    ("sent", Kind.FAILED, "failed"), ("delivered", Kind.FAILED, "delivered"), ("opened", Kind.FAILED, "opened"),
    ("sent", Kind.DELIVERED, "delivered"), ("bounced", Kind.DELIVERED, "bounced"), ("opened", Kind.DELIVERED, "opened"),
    ("sent", Kind.DEFERRED, "sent"), ("delivered", Kind.COMPLAINED, "delivered"),
    ("clicked", Kind.UNSUBSCRIBED, "clicked"),
])  # fmt: skip
def test_states_follow_the_transition_table_and_every_report_is_an_event(workspace, before, kind, after):
    recipient = sent_recipient(workspace)
    Recipient.objects.update(state=before)
    report_event(recipient, kind, HARD if kind in {Kind.BOUNCED, Kind.FAILED, Kind.DEFERRED} else {}, fault=True)
    recipient.refresh_from_db()
    assert recipient.state == after
    assert event_kinds()[-1] == kind.value
    if kind is Kind.BOUNCED:
        assert Suppression.objects.exists() == (after == "bounced")


@each(
    ("setting", "fault", "suppressed"),
    [("recipient_fault", True, True), ("recipient_fault", False, False), ("every_bounce", False, True)],
)
def test_the_setting_decides_which_bounces_suppress(workspace, settings, setting, fault, suppressed):
    settings.SUPPRESS_ON = setting
    report_event(sent_recipient(workspace), Kind.BOUNCED, SPAM, fault=fault)
    assert Suppression.objects.exists() is suppressed


def test_giving_up_fails_the_recipient_and_never_suppresses(workspace, settings):
    settings.SUPPRESS_ON = "every_bounce"
    report_event(sent_recipient(workspace), Kind.FAILED, GIVEN_UP)
    assert Email.objects.get().status == "failed"
    assert not Suppression.objects.exists()
    assert counter_values()["recipients.failed"] == 1


def test_a_complaint_suppresses_and_changes_no_state(workspace):
    recipient = sent_recipient(workspace, outcome=OK)
    report_event(recipient, Kind.COMPLAINED)
    assert Suppression.objects.get().reason == "complaint"
    assert Email.objects.get().status == "delivered"
    assert event_kinds()[-1] == "complained"


def test_a_complaint_suppresses_in_its_own_workspace_only(workspace, bob):
    report_event(sent_recipient(workspace), Kind.COMPLAINED)
    assert not Suppression.objects.filter(workspace=bob.workspace).exists()


def test_a_report_about_a_deleted_recipient_records_nothing(workspace):
    assert report_event(sent_recipient(workspace), Kind.BOUNCED, HARD) == [RecordResult.NEW]
    events = Event.objects.count()
    assert record_reports([ReportedEvent(new_id(), Kind.BOUNCED, HARD)]) == [RecordResult.UNKNOWN_RECIPIENT]
    assert Event.objects.count() == events


REPORTS = [(Kind.DELIVERED, {}), (Kind.BOUNCED, HARD), (Kind.DEFERRED, GIVEN_UP), (Kind.COMPLAINED, {})]


@each("order", list(itertools.permutations(range(len(REPORTS)))))
def test_any_order_has_the_same_result(workspace, order):
    recipient = sent_recipient(workspace)
    for number in (*order, *order):
        report_event(recipient, *REPORTS[number])
    recipient.refresh_from_db()
    assert (recipient.state, Email.objects.get().status) == ("bounced", "bounced")
    assert sorted(event_kinds()) == sorted(["queued", "sent", "complained", "deferred", "delivered", "bounced"])


def test_a_batch_takes_a_fixed_number_of_statements(workspace, django_assert_max_num_queries):
    recipients = [sent_recipient(workspace, f"a{number}@example.com") for number in range(30)]
    reports = [ReportedEvent(recipient.id, Kind.BOUNCED, HARD, is_recipient_fault=True) for recipient in recipients]
    with django_assert_max_num_queries(14):
        assert record_reports(reports) == [RecordResult.NEW] * 30
    assert Email.objects.filter(status="bounced").count() == 30
    assert Suppression.objects.count() == 30


def test_the_queries_use_their_indexes(workspace):
    from emails.feedback import reports

    prefer_indexes()
    plans = [
        plan_of(statement.replace("%s", "%s::uuid[]"), values)
        for statement, values in [
            (reports.LOCK, [[]]),
            (reports.RECORDED_EVENTS, [[], []]),
            (reports.LOCK_PENDING, [[]]),
        ]
    ]
    assert not any("Seq Scan" in plan for plan in plans), plans
