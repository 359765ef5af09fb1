"""Workspaces with high bounce or complaint rates are warned and then suspended."""

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

import pytest
from django.db import OperationalError, connection
from django.db.models import F
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from analytics.reputation import services
from analytics.reputation.counting import ReputationCounter
from analytics.reputation.rates import PERIOD_DAYS, READ_RATES, rates_parameters, read_rates
from console.system_mail.models import SystemMail
from console.system_mail.tasks import check_workspaces
from core.counters import counters
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.lib.ids import new_id
from core.workspaces.account_status import lift_suspension, suspend_workspace
from core.workspaces.models import AuditEntry, Membership, User, Workspace
from emails.feedback.reports import RecordResult, ReportedEvent, record_reports
from emails.models import Recipient
from events.kinds import EventKind
from tests.analytics.reputation.conftest import count, is_suspended
from tests.conftest import Api, mail, make_account
from tests.console.dashboard.conftest import signed_in
from tests.emails.builders import FAILED, LATER, OK, SENT, UNKNOWN_USER, fold
from tests.interfaces.inbound.fixtures import sent_recipient as send_one
from tests.plans import plan_of, prefer_indexes
from tests.rows import each

pytestmark = pytest.mark.django_db

COMPLAINED, BOUNCED = ReputationCounter.COMPLAINED, ReputationCounter.BOUNCED
WITHOUT_TEXT = DeliveryOutcome(DeliveryStatus.BOUNCED, Reply(550, ""), "rejected", is_recipient_fault=True)
BLOCKED = DeliveryOutcome(DeliveryStatus.BOUNCED, Reply(554, "5.7.1 listed"), "blocklisted")


@pytest.fixture(autouse=True)
def _limits(settings):
    settings.COMPLAINT_WARN_PERCENT, settings.COMPLAINT_PAUSE_PERCENT = Decimal("0.1"), Decimal("0.3")
    settings.BOUNCE_WARN_PERCENT, settings.BOUNCE_PAUSE_PERCENT = Decimal(5), Decimal(10)


def audit_actions(workspace):
    entries = AuditEntry.objects.filter(workspace=workspace).exclude(act="workspace_created")
    return list(entries.order_by("id").values_list("act", flat=True))


def reputation(workspace):
    """Return the reputation counters of the workspace: sent, complained, bounced."""
    sums = dict.fromkeys(ReputationCounter, 0)
    fold()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT key, sum(count)::int FROM analytics_tally WHERE starts_with(key, 'rated.') AND workspace_id = %s"
            " GROUP BY 1",
            [counters.to_uuid(workspace.id, prefix="ws_")],
        )
        sums |= {ReputationCounter(key): number for key, number in cursor.fetchall()}
    return sums[ReputationCounter.SENT], sums[COMPLAINED], sums[BOUNCED]


class TestThresholds:
    @each(
        ("counts", "actions"),
        [
            ({"sent": 100_000, "complained": 99}, []),
            ({"sent": 100_000, "complained": 100}, []),
            ({"sent": 100_000, "complained": 101}, ["owners_warned"]),
            ({"sent": 100_000, "complained": 300}, ["owners_warned"]),
            ({"sent": 100_000, "complained": 301}, ["workspace_suspended"]),
            ({"sent": 10_000, "bounced": 499}, []),
            ({"sent": 10_000, "bounced": 500}, []),
            ({"sent": 10_000, "bounced": 501}, ["owners_warned"]),
            ({"sent": 10_000, "bounced": 1_000}, ["owners_warned"]),
            ({"sent": 10_000, "bounced": 1_001}, ["workspace_suspended"]),
            # Counts below MINIMUM_COUNTS have no effect at any rate.
            ({"sent": 9, "complained": 9}, []),
            ({"sent": 10, "complained": 10}, ["workspace_suspended"]),
            ({"sent": 49, "bounced": 49}, []),
            ({"sent": 50, "bounced": 50}, ["workspace_suspended"]),
            ({"sent": 10_000, "complained": 11, "bounced": 501}, ["owners_warned", "owners_warned"]),
            ({"sent": 10_000, "complained": 31, "bounced": 1_001}, ["workspace_suspended"]),
            ({}, []),
        ],
    )
    def test_a_rate_above_a_threshold_warns_or_suspends(self, alice, counts, actions):
        count(alice.workspace, **counts)
        check_workspaces()
        assert audit_actions(alice.workspace) == actions
        assert is_suspended(alice.workspace) is ("workspace_suspended" in actions)

    def test_folded_and_unfolded_counters_add_up_over_days(self, alice):
        first = datetime.combine(timezone.now().astimezone(UTC).date() - timedelta(days=PERIOD_DAYS - 1), time.min, UTC)
        count(alice.workspace, sent=50_000, complained=100, sent_at=first)
        fold()
        count(alice.workspace, sent=25_000, complained=100)
        fold()
        count(alice.workspace, sent=25_000, complained=101)
        (rates,) = read_rates()
        assert (rates.sent, rates.counts) == (100_000, {COMPLAINED: 301, BOUNCED: 0})

    @each("folded", [True, False])
    def test_emails_sent_before_the_period_do_not_count(self, alice, folded):
        first = datetime.combine(timezone.now().astimezone(UTC).date() - timedelta(days=PERIOD_DAYS - 1), time.min, UTC)
        count(alice.workspace, sent=1_000, complained=900, sent_at=first - timedelta(hours=1))
        if folded:
            fold()
        check_workspaces()
        assert audit_actions(alice.workspace) == []

    @each(
        ("counts", "setting"),
        [({"complained": 31}, "COMPLAINT_PAUSE_PERCENT"), ({"bounced": 1_001}, "BOUNCE_PAUSE_PERCENT")],
    )
    def test_without_a_suspension_threshold_the_owners_are_only_warned(self, alice, settings, counts, setting):
        setattr(settings, setting, None)
        count(alice.workspace, sent=10_000, **counts)
        check_workspaces()
        assert audit_actions(alice.workspace) == ["owners_warned"]
        assert not is_suspended(alice.workspace)

    def test_a_warning_can_be_disabled_separately(self, alice, settings):
        settings.BOUNCE_WARN_PERCENT = None
        count(alice.workspace, sent=10_000, bounced=501)
        check_workspaces()
        assert audit_actions(alice.workspace) == []

    def test_with_all_thresholds_off_nothing_is_read(self, alice, settings, django_assert_num_queries):
        for name in ("COMPLAINT_WARN", "COMPLAINT_PAUSE", "BOUNCE_WARN", "BOUNCE_PAUSE"):
            setattr(settings, f"{name}_PERCENT", None)
        count(alice.workspace, sent=100, bounced=100)
        with django_assert_num_queries(0):
            check_workspaces()


class TestSuspension:
    def test_the_owner_and_staff_see_the_reason_and_reading_still_works(self, alice, api: Api, settings):
        settings.PUBLIC_URL = "https://mail.example.com"
        count(alice.workspace, sent=10_000, complained=42)
        check_workspaces()
        alice.workspace.refresh_from_db()
        summary = "42 of 10,000 recipients in 7 days reported the email as spam: 0.42%, above the limit of 0.3%."
        assert alice.workspace.suspended_reason == (
            f"{summary} Clean your lists, then contact the operator of this service."
        )
        entry = AuditEntry.objects.latest("id")
        assert (entry.about, entry.actor_kind) == (alice.workspace.suspended_reason, "service")
        email = SystemMail.objects.get()
        assert email.recipient == alice.owner.email
        assert email.subject == "Sending is suspended for alice"
        assert summary in email.text
        assert "https://mail.example.com/dashboard/" in email.text
        refused = api.post("/emails/send", mail())
        assert (refused.status_code, refused.json()["code"]) == (403, "workspace_suspended")
        assert api.get("/emails").status_code == 200
        assert summary in signed_in(alice.owner).get("/dashboard/").text

    def test_only_active_owners_get_an_email(self, alice, bob):
        member, gone = (User.objects.create(email=f"{name}@alice.example") for name in ("member", "gone"))
        Membership.objects.create(workspace=alice.workspace, user=member)
        Membership.objects.create(workspace=alice.workspace, user=bob.owner, role="owner")
        Membership.objects.create(workspace=alice.workspace, user=gone, role="owner")
        User.objects.filter(id=gone.id).update(is_active=False)
        count(alice.workspace, sent=100, bounced=100)
        check_workspaces()
        written = SystemMail.objects.values_list("recipient", flat=True)
        assert sorted(written) == sorted([alice.owner.email, bob.owner.email])

    def test_each_workspace_is_checked_by_its_own_rates(self, alice, bob):
        count(alice.workspace, sent=10_000, bounced=1_001)
        count(bob.workspace, sent=10_000, bounced=2)
        check_workspaces()
        assert is_suspended(alice.workspace)
        assert audit_actions(bob.workspace) == []
        assert set(SystemMail.objects.values_list("recipient", flat=True)) == {alice.owner.email}

    def test_a_workspace_that_is_already_suspended_keeps_its_reason(self, alice):
        suspend_workspace(alice.workspace, reason="Did not pay.")
        count(alice.workspace, sent=100, bounced=100)
        check_workspaces()
        alice.workspace.refresh_from_db()
        assert alice.workspace.suspended_reason == "Did not pay."
        assert not SystemMail.objects.exists()

    @each("bounced", [501, 1_001])
    def test_a_second_check_repeats_nothing(self, alice, bounced):
        count(alice.workspace, sent=10_000, bounced=bounced)
        for _ in range(3):
            check_workspaces()
        assert len(audit_actions(alice.workspace)) == 1
        assert SystemMail.objects.count() == 1

    def test_a_check_with_old_rates_does_not_suspend_again_after_staff_lifted_it(self, alice, monkeypatch):
        count(alice.workspace, sent=100, bounced=100)
        old = read_rates()
        check_workspaces()
        lift_suspension(alice.workspace)
        monkeypatch.setattr("analytics.reputation.services.read_rates", lambda: old)
        check_workspaces()
        assert not is_suspended(alice.workspace)

    def test_a_workspace_that_cannot_be_checked_does_not_stop_the_others(self, alice, bob, monkeypatch):
        for account in (alice, bob):
            count(account.workspace, sent=100, complained=20)
        locked = read_rates()[0].workspace_id

        def suspend(rates, *arguments, real=services._suspend):
            if rates.workspace_id == locked:
                raise OperationalError("canceling statement due to lock timeout")
            real(rates, *arguments)

        monkeypatch.setattr(services, "_suspend", suspend)
        check_workspaces()
        assert {account.workspace.id: is_suspended(account.workspace) for account in (alice, bob)} == {
            account.workspace.id: account.workspace.id != locked for account in (alice, bob)
        }

    def test_any_name_and_any_rate_fit(self, alice):
        Workspace.objects.update(name="{0} %s\r\nBcc: x@y.example " + "n" * 70)
        count(alice.workspace, sent=10**15, bounced=10**15 - 1)
        check_workspaces()
        alice.workspace.refresh_from_db()
        assert 150 < len(alice.workspace.suspended_reason) <= 200
        assert "\n" not in SystemMail.objects.get().subject
        assert "\nBcc" not in SystemMail.objects.get().text


class TestWarning:
    def test_a_warning_has_the_rate_and_does_not_stop_sending(self, alice, api: Api):
        count(alice.workspace, sent=10_000, bounced=700)
        check_workspaces()
        summary = "700 of 10,000 recipients in 7 days had an invalid address: 7.00%, above the limit of 5%."
        assert AuditEntry.objects.latest("id").about == summary
        assert summary in SystemMail.objects.get().text
        assert api.post("/emails/send", mail()).status_code == 202

    @each(("age", "warnings"), [(PERIOD_DAYS * 24 - 1, 1), (PERIOD_DAYS * 24 + 1, 2)])
    def test_a_warning_is_repeated_after_a_week(self, alice, age, warnings):
        count(alice.workspace, sent=10_000, bounced=700)
        check_workspaces()
        Workspace.objects.update(bounces_warned_at=Now() - timedelta(hours=age))
        check_workspaces()
        assert len(audit_actions(alice.workspace)) == warnings

    def test_a_bounce_warning_does_not_prevent_a_complaint_warning(self, alice):
        count(alice.workspace, sent=10_000, bounced=700)
        check_workspaces()
        count(alice.workspace, complained=11)
        check_workspaces()
        assert audit_actions(alice.workspace) == ["owners_warned", "owners_warned"]

    def test_a_warned_workspace_is_suspended_when_the_rate_rises(self, alice):
        count(alice.workspace, sent=10_000, bounced=700)
        check_workspaces()
        count(alice.workspace, bounced=301)
        check_workspaces()
        assert audit_actions(alice.workspace) == ["owners_warned", "workspace_suspended"]


class TestLiftedSuspension:
    """Emails sent before a suspension no longer count after it, even if they are reported later."""

    @pytest.fixture(params=[1, 30, 100], ids=["an hour", "a day", "four days"])
    def lifted(self, alice, request):
        """Alice's workspace, suspended the given number of hours ago, with the suspension lifted now."""
        count(alice.workspace, sent=1_000, bounced=900, sent_at=timezone.now() - timedelta(hours=request.param))
        fold()
        check_workspaces()
        Workspace.objects.update(suspended_at=F("suspended_at") - timedelta(hours=request.param))
        lift_suspension(alice.workspace)
        return alice.workspace

    def test_old_rates_do_not_suspend_again(self, lifted):
        check_workspaces()
        assert audit_actions(lifted) == ["workspace_suspended", "suspension_lifted"]

    @each("folded", [True, False])
    def test_emails_sent_afterwards_count(self, lifted, folded):
        count(lifted, sent=100, bounced=60)
        if folded:
            fold()
        (rates,) = read_rates()
        assert (rates.sent, rates.counts[BOUNCED]) == (100, 60)
        check_workspaces()
        assert is_suspended(lifted)

    def test_a_late_complaint_about_an_earlier_email_does_not_count(self, lifted):
        before = Workspace.objects.get().judged_from
        count(lifted, complained=500, sent_at=before)
        check_workspaces()
        assert not is_suspended(lifted)

    def test_lifting_a_suspension_resets_the_warnings(self, alice):
        count(alice.workspace, sent=10_000, bounced=700)
        check_workspaces()
        suspend_workspace(alice.workspace, reason="x")
        lift_suspension(alice.workspace)
        alice.workspace.refresh_from_db()
        assert (alice.workspace.bounces_warned_at, alice.workspace.complaints_warned_at) == (None, None)

    def test_lifting_without_a_suspension_resets_nothing(self, alice):
        lift_suspension(alice.workspace)
        count(alice.workspace, sent=100, bounced=100)
        check_workspaces()
        assert is_suspended(alice.workspace)


class TestCounters:
    """Replies of mail hosts and reports of recipients are the basis of the rates."""

    @each(
        ("outcome", "counted"),
        [
            (UNKNOWN_USER, (1, 0, 1)),
            # Refused because of the sender or the content, which may be the operator's fault.
            (BLOCKED, (0, 0, 0)),
            (WITHOUT_TEXT, (0, 0, 0)),
            (FAILED, (0, 0, 0)),
            (SENT, (1, 0, 0)),
            (OK, (1, 0, 0)),
            (LATER, (0, 0, 0)),
        ],
    )
    def test_a_delivery_attempt_is_counted_by_its_outcome(self, alice, api, outcome, counted):
        send_one(alice.workspace, outcome=outcome)
        assert reputation(alice.workspace) == counted

    @each(
        ("kind", "is_recipient_fault", "counted"),
        [
            (EventKind.BOUNCED, True, (1, 0, 1)),
            (EventKind.BOUNCED, False, (1, 0, 0)),
            (EventKind.COMPLAINED, False, (1, 1, 0)),
            (EventKind.UNSUBSCRIBED, False, (1, 0, 0)),
            (EventKind.DELIVERED, False, (1, 0, 0)),
        ],
    )
    def test_a_repeated_report_counts_once(self, alice, api, kind, is_recipient_fault, counted):
        recipient = send_one(alice.workspace)
        for message in ("a", "b"):
            report = ReportedEvent(
                recipient.id, kind, {"message": message, "reason": "x"}, is_recipient_fault=is_recipient_fault
            )
            record_reports([report, report])
        assert reputation(alice.workspace) == counted

    def test_two_reports_of_one_bounce_count_once(self, alice, api):
        recipient = send_one(alice.workspace)
        reports = [
            ReportedEvent(recipient.id, EventKind.BOUNCED, {"code": code}, is_recipient_fault=True) for code in (1, 2)
        ]
        assert record_reports(reports) == [RecordResult.NEW] * 2
        assert reputation(alice.workspace) == (1, 0, 1)

    def test_a_report_counts_in_the_hour_in_which_the_email_was_sent(self, alice, api):
        recipient = send_one(alice.workspace)
        Recipient.objects.update(sent_at=Now() - timedelta(days=PERIOD_DAYS + 1))
        record_reports([ReportedEvent(recipient.id, EventKind.COMPLAINED)])
        assert reputation(alice.workspace) == (1, 1, 0)
        with connection.cursor() as cursor:
            cursor.execute("SELECT now() - hour FROM analytics_tally WHERE key = 'rated.complained'")
            ((age,),) = cursor.fetchall()
        assert timedelta(days=PERIOD_DAYS + 1) <= age < timedelta(days=PERIOD_DAYS + 1, hours=1)

    @each("address", ["bounced+x@simulator.test", "Delivered@SIMULATOR.test"])
    def test_simulator_recipients_are_not_counted(self, alice, api, address):
        recipient = send_one(alice.workspace, address, outcome=UNKNOWN_USER)
        record_reports([ReportedEvent(recipient.id, EventKind.COMPLAINED)])
        assert reputation(alice.workspace) == (0, 0, 0)


class TestQuery:
    def test_as_many_statements_for_many_workspaces_as_for_one(self, alice):
        count(alice.workspace, sent=10_000, bounced=60)
        with CaptureQueriesContext(connection) as few:
            check_workspaces()
        for number in range(5):
            count(make_account(f"more{number}").workspace, sent=10_000, bounced=60)
        with CaptureQueriesContext(connection) as many:
            check_workspaces()
        assert len(read_rates()) == 6
        assert len(few) == len(many)
        assert sum("analytics_tally" in query["sql"] for query in many) == 2

    def test_the_query_uses_the_indexes_of_counters_and_reads_no_email(self, alice):
        prefer_indexes()
        plan = plan_of(READ_RATES, rates_parameters())
        assert "emails_" not in plan
        assert "one_tally_a_day" in plan
        assert "one_tally_an_hour" in plan
        assert "delta_workspace" in plan

    def test_counters_without_a_workspace_are_ignored(self, alice):
        for unknown_id in (counters.SERVICE, new_id("ws_")):
            counters.add([(counters.CounterKey(unknown_id, timezone.now(), BOUNCED.value), 100)])
        assert read_rates() == []
