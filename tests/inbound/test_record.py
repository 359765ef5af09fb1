"""What reports do to a recipient: along the table of states, once, and in whatever order they come."""

import itertools

import pytest
from django.db import connection

from analytics import counters
from analytics.models import Tally
from emails.events.reports import Reported, record_reports
from emails.models import Email, Event, Pending, Recipient
from emails.sending.outcomes import Result, record
from lib.ids import new_id
from suppressions.models import Suppression
from tests.inbound.stage import DELIVERED, SENT, claimed, sent

pytestmark = pytest.mark.django_db

HARD = {"code": 550, "enhancedCode": "5.1.1", "message": "No such user", "reason": "unknown_user"}
SPAM = {"code": 554, "enhancedCode": "5.7.1", "message": "Looks like spam", "reason": "spam"}
GIVEN_UP = {"code": 451, "enhancedCode": "4.4.1", "message": "No answer", "reason": "network"}
Kind = Event.Kind


def tell(recipient, kind, details=None, *, fault=False):
    return record_reports([Reported(recipient.id, kind, details or {}, is_recipient_fault=fault)])


def timeline(email=None):
    return list((email or Email.objects.get()).events.values_list("kind", flat=True))


def counter_values():
    while counters.fold():
        pass
    return {key: count for key, count in Tally.objects.values_list("key", "count") if count}


@pytest.mark.parametrize("outcome", [SENT, DELIVERED])
def test_a_bounce_after_the_250_is_a_bounce(workspace, outcome):
    recipient = sent(workspace, outcome=outcome)
    assert tell(recipient, Kind.BOUNCED, HARD, fault=True) == [True]
    recipient.refresh_from_db()
    email = Email.objects.get()
    assert (recipient.state, email.status, email.error_message) == ("bounced", "bounced", "No such user")
    assert (recipient.reply_code, recipient.enhanced_code, recipient.reason) == (550, "5.1.1", "unknown_user")
    assert recipient.bounced_at == email.bounced_at
    assert timeline()[-1] == "bounced"
    assert Event.objects.last().payload == {"emailId": email.id, "to": "ada@example.com", **HARD}
    assert Suppression.objects.get().reason == "bounce"
    assert counter_values()["recipients.failed"] == 1
    assert "recipients.completed" not in counter_values()


def test_the_same_report_twice_is_one_event(workspace):
    recipient = sent(workspace)
    assert tell(recipient, Kind.BOUNCED, HARD, fault=True) == [True]
    assert tell(recipient, Kind.BOUNCED, HARD, fault=True) == [False]
    twice = [Reported(recipient.id, Kind.COMPLAINED)] * 2
    assert record_reports(twice) == [True, False]
    assert timeline() == ["queued", "sent", "bounced", "complained"]
    assert Suppression.objects.count() == 1


def test_a_bounce_that_comes_before_the_250_was_recorded_ends_the_same(workspace):
    recipient, held = claimed(workspace)
    tell(recipient, Kind.BOUNCED, HARD, fault=True)
    record([Result(held, SENT)])
    recipient.refresh_from_db()
    assert recipient.state == "bounced"
    assert recipient.sent_at is not None
    assert timeline() == ["queued", "sent", "bounced"]
    assert not Pending.objects.exists()
    assert Suppression.objects.exists()
    assert counter_values() == {
        "status.bounced": 1,
        "reached.bounced": 1,
        "recipients.accepted": 1,
        "recipients.failed": 1,
        "rated.sent": 1,
        "rated.bounced": 1,
    }


def test_a_delivery_report_ends_a_retry_whose_first_copy_had_arrived(workspace):
    recipient, _ = claimed(workspace)
    Pending.objects.update(stage=Pending.Stage.WAITING)
    tell(recipient, Kind.DELIVERED)
    recipient.refresh_from_db()
    assert recipient.state == "delivered"
    assert timeline() == ["queued", "sent", "delivered"]
    assert not Pending.objects.exists()
    assert counter_values()["recipients.completed"] == 1


@pytest.mark.parametrize(
    ("before", "kind", "after"),
    [
        ("sent", Kind.BOUNCED, "bounced"),
        ("delivered", Kind.BOUNCED, "bounced"),
        ("opened", Kind.BOUNCED, "opened"),
        ("clicked", Kind.BOUNCED, "clicked"),
        ("failed", Kind.BOUNCED, "failed"),
        ("cancelled", Kind.BOUNCED, "cancelled"),
        ("sent", Kind.FAILED, "failed"),
        ("delivered", Kind.FAILED, "delivered"),
        ("opened", Kind.FAILED, "opened"),
        ("sent", Kind.DELIVERED, "delivered"),
        ("bounced", Kind.DELIVERED, "bounced"),
        ("opened", Kind.DELIVERED, "opened"),
        ("sent", Kind.DEFERRED, "sent"),
        ("delivered", Kind.COMPLAINED, "delivered"),
        ("clicked", Kind.UNSUBSCRIBED, "clicked"),
    ],
)
def test_states_move_along_the_table_and_everything_is_told(workspace, before, kind, after):
    recipient = sent(workspace)
    Recipient.objects.update(state=before)
    tell(recipient, kind, HARD if kind in {Kind.BOUNCED, Kind.FAILED, Kind.DEFERRED} else {}, fault=True)
    recipient.refresh_from_db()
    assert recipient.state == after
    assert timeline()[-1] == kind.value
    if kind is Kind.BOUNCED:
        assert Suppression.objects.exists() == (after == "bounced")


@pytest.mark.parametrize(
    ("setting", "fault", "suppressed"),
    [("recipient_fault", True, True), ("recipient_fault", False, False), ("every_bounce", False, True)],
)
def test_the_setting_says_which_bounces_suppress(workspace, settings, setting, fault, suppressed):
    settings.SUPPRESS_ON = setting
    tell(sent(workspace), Kind.BOUNCED, SPAM, fault=fault)
    assert Suppression.objects.exists() is suppressed


def test_giving_up_fails_and_never_suppresses(workspace, settings):
    settings.SUPPRESS_ON = "every_bounce"
    tell(sent(workspace), Kind.FAILED, GIVEN_UP)
    assert Email.objects.get().status == "failed"
    assert not Suppression.objects.exists()
    assert counter_values()["recipients.failed"] == 1


def test_a_complaint_suppresses_and_changes_no_state(workspace):
    recipient = sent(workspace, outcome=DELIVERED)
    tell(recipient, Kind.COMPLAINED)
    assert Suppression.objects.get().reason == "complaint"
    assert Email.objects.get().status == "delivered"
    assert timeline()[-1] == "complained"


def test_what_was_told_of_one_workspace_suppresses_in_no_other(workspace, bob):
    tell(sent(workspace), Kind.COMPLAINED)
    assert not Suppression.objects.filter(workspace=bob.workspace).exists()


def test_a_recipient_that_retention_deleted_is_nobody(workspace):
    assert tell(sent(workspace), Kind.BOUNCED, HARD) == [True]
    events = Event.objects.count()
    assert record_reports([Reported(new_id(), Kind.BOUNCED, HARD)]) == [None]
    assert Event.objects.count() == events


FACTS = [
    (Kind.DELIVERED, {}),
    (Kind.BOUNCED, HARD),
    (Kind.DEFERRED, GIVEN_UP),
    (Kind.COMPLAINED, {}),
]


@pytest.mark.parametrize("order", list(itertools.permutations(range(len(FACTS)))))
def test_any_order_ends_the_same(workspace, order):
    recipient = sent(workspace)
    for number in (*order, *order):
        tell(recipient, *FACTS[number])
    recipient.refresh_from_db()
    assert (recipient.state, Email.objects.get().status) == ("bounced", "bounced")
    assert sorted(timeline()) == sorted(["queued", "sent", "complained", "deferred", "delivered", "bounced"])


def test_a_batch_takes_a_fixed_number_of_statements(workspace, django_assert_max_num_queries):
    recipients = [sent(workspace, f"a{number}@example.com") for number in range(30)]
    reports = [Reported(recipient.id, Kind.BOUNCED, HARD, is_recipient_fault=True) for recipient in recipients]
    with django_assert_max_num_queries(14):
        assert record_reports(reports) == [True] * 30
    assert Email.objects.filter(status="bounced").count() == 30
    assert Suppression.objects.count() == 30


def test_the_look_ups_have_their_indexes(workspace):
    from emails.events import reports

    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        plans = []
        for statement, values in [(reports.LOCK, [[]]), (reports.TOLD, [[], []]), (reports.LOCK_PENDING, [[]])]:
            cursor.execute("EXPLAIN " + statement.replace("%s", "%s::uuid[]"), values)
            plans.append("\n".join(row[0] for row in cursor.fetchall()))
    assert not any("Seq Scan" in plan for plan in plans), plans
