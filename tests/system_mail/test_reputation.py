"""Who sends to people who do not want it, or to addresses that do not exist, is warned and then suspended."""

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

import pytest
from django.db import OperationalError, connection
from django.db.models import F
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from analytics import counters
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from emails.events.reports import Reported, record_reports
from emails.models import Event, Recipient
from emails.upkeep.reputation_counters import Rated
from lib.ids import new_id
from system_mail.models import SystemMail
from system_mail.reputation import services
from system_mail.reputation.rates import DAYS, RATES, read_rates, values
from system_mail.tasks import judge
from tests.conftest import Api, mail, make_account
from tests.dashboard.conftest import signed_in
from tests.inbound.stage import sent as send_one
from workspaces.account_status import lift_suspension, suspend_workspace
from workspaces.models import AuditEntry, Membership, User, Workspace

pytestmark = pytest.mark.django_db

COMPLAINED, BOUNCED = Rated.COMPLAINED, Rated.BOUNCED
NOBODY = DeliveryOutcome(
    DeliveryStatus.BOUNCED, Reply(550, "5.1.1 no such user"), "unknown_user", is_recipient_fault=True
)
WORDLESS = DeliveryOutcome(DeliveryStatus.BOUNCED, Reply(550, ""), "rejected", is_recipient_fault=True)
BLOCKED = DeliveryOutcome(DeliveryStatus.BOUNCED, Reply(554, "5.7.1 listed"), "blocklisted")
FAILED = DeliveryOutcome(DeliveryStatus.FAILED, Reply(0, "too long"), "expired")


@pytest.fixture(autouse=True)
def _limits(settings):
    settings.COMPLAINT_WARN_PERCENT, settings.COMPLAINT_PAUSE_PERCENT = Decimal("0.1"), Decimal("0.3")
    settings.BOUNCE_WARN_PERCENT, settings.BOUNCE_PAUSE_PERCENT = Decimal(5), Decimal(10)


def count(workspace, *, sent=0, complained=0, bounced=0, left_at=None):
    """Count as emails.upkeep.reputation_counters does, without the mail."""
    counts = {Rated.SENT: sent, COMPLAINED: complained, BOUNCED: bounced}
    moment = left_at or timezone.now()
    counters.add((counters.CounterKey(workspace.id, moment, what.value), number) for what, number in counts.items())


def fold():
    while counters.fold():
        pass


def acts(workspace):
    found = AuditEntry.objects.filter(workspace=workspace).exclude(act="workspace_created")
    return list(found.order_by("id").values_list("act", flat=True))


def is_suspended(workspace):
    workspace.refresh_from_db()
    return workspace.is_suspended


def rated(workspace):
    """Return what is counted of the workspace: sent, complained, bounced."""
    sums = dict.fromkeys(Rated, 0)
    fold()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT key, sum(count)::int FROM analytics_tally WHERE starts_with(key, 'rated.') AND workspace_id = %s"
            " GROUP BY 1",
            [counters.to_uuid(workspace.id, prefix="ws_")],
        )
        sums |= {Rated(key): number for key, number in cursor.fetchall()}
    return sums[Rated.SENT], sums[COMPLAINED], sums[BOUNCED]


class TestLimits:
    @pytest.mark.parametrize(
        ("counts", "found"),
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
            # Nothing is said of few, however large a part they are.
            ({"sent": 9, "complained": 9}, []),
            ({"sent": 10, "complained": 10}, ["workspace_suspended"]),
            ({"sent": 49, "bounced": 49}, []),
            ({"sent": 50, "bounced": 50}, ["workspace_suspended"]),
            ({"sent": 10_000, "complained": 11, "bounced": 501}, ["owners_warned", "owners_warned"]),
            ({"sent": 10_000, "complained": 31, "bounced": 1_001}, ["workspace_suspended"]),
            ({}, []),
        ],
    )
    def test_what_a_rate_leads_to(self, alice, counts, found):
        count(alice.workspace, **counts)
        judge()
        assert acts(alice.workspace) == found
        assert is_suspended(alice.workspace) is ("workspace_suspended" in found)

    def test_folded_and_unfolded_add_up_over_days(self, alice):
        first = datetime.combine(timezone.now().astimezone(UTC).date() - timedelta(days=DAYS - 1), time.min, UTC)
        count(alice.workspace, sent=50_000, complained=100, left_at=first)
        fold()
        count(alice.workspace, sent=25_000, complained=100)
        fold()
        count(alice.workspace, sent=25_000, complained=101)
        (found,) = read_rates()
        assert (found.sent, found.counts) == (100_000, {COMPLAINED: 301, BOUNCED: 0})

    @pytest.mark.parametrize("folded", [True, False])
    def test_what_left_before_is_forgotten(self, alice, folded):
        first = datetime.combine(timezone.now().astimezone(UTC).date() - timedelta(days=DAYS - 1), time.min, UTC)
        count(alice.workspace, sent=1_000, complained=900, left_at=first - timedelta(hours=1))
        if folded:
            fold()
        judge()
        assert acts(alice.workspace) == []

    @pytest.mark.parametrize(
        ("counts", "switch"),
        [({"complained": 31}, "COMPLAINT_PAUSE_PERCENT"), ({"bounced": 1_001}, "BOUNCE_PAUSE_PERCENT")],
    )
    def test_without_a_pause_the_worst_is_a_warning(self, alice, settings, counts, switch):
        setattr(settings, switch, None)
        count(alice.workspace, sent=10_000, **counts)
        judge()
        assert acts(alice.workspace) == ["owners_warned"]
        assert not is_suspended(alice.workspace)

    def test_a_warning_can_be_off_alone(self, alice, settings):
        settings.BOUNCE_WARN_PERCENT = None
        count(alice.workspace, sent=10_000, bounced=501)
        judge()
        assert acts(alice.workspace) == []

    def test_with_all_off_nothing_is_even_read(self, alice, settings, django_assert_num_queries):
        for name in ("COMPLAINT_WARN", "COMPLAINT_PAUSE", "BOUNCE_WARN", "BOUNCE_PAUSE"):
            setattr(settings, f"{name}_PERCENT", None)
        count(alice.workspace, sent=100, bounced=100)
        with django_assert_num_queries(0):
            judge()


class TestSuspending:
    def test_the_owner_and_staff_read_why_and_the_rest_goes_on(self, alice, api: Api, settings):
        settings.PUBLIC_URL = "https://mail.example.com"
        count(alice.workspace, sent=10_000, complained=42)
        judge()
        alice.workspace.refresh_from_db()
        figure = "42 of 10,000 recipients in 7 days called the mail spam: 0.42 %, above the limit of 0.3 %."
        assert alice.workspace.suspended_reason == (f"{figure} Clean your lists, then ask whoever runs this service.")
        entry = AuditEntry.objects.latest("id")
        assert (entry.about, entry.actor_kind) == (alice.workspace.suspended_reason, "service")
        letter = SystemMail.objects.get()
        assert letter.recipient == alice.owner.email
        assert letter.subject == "Sending is suspended for alice"
        assert figure in letter.text
        assert "https://mail.example.com/dashboard/" in letter.text
        refused = api.post("/emails/send", mail())
        assert (refused.status_code, refused.json()["code"]) == (403, "workspace_suspended")
        assert api.get("/emails").status_code == 200
        assert figure in signed_in(alice.owner).get("/dashboard/").text

    def test_only_owners_who_may_sign_in_are_written_to(self, alice, bob):
        member, gone = (User.objects.create(email=f"{name}@alice.example") for name in ("member", "gone"))
        Membership.objects.create(workspace=alice.workspace, user=member)
        Membership.objects.create(workspace=alice.workspace, user=bob.owner, role="owner")
        Membership.objects.create(workspace=alice.workspace, user=gone, role="owner")
        User.objects.filter(id=gone.id).update(is_active=False)
        count(alice.workspace, sent=100, bounced=100)
        judge()
        written = SystemMail.objects.values_list("recipient", flat=True)
        assert sorted(written) == sorted([alice.owner.email, bob.owner.email])

    def test_each_workspace_is_judged_by_its_own(self, alice, bob):
        count(alice.workspace, sent=10_000, bounced=1_001)
        count(bob.workspace, sent=10_000, bounced=2)
        judge()
        assert is_suspended(alice.workspace)
        assert acts(bob.workspace) == []
        assert set(SystemMail.objects.values_list("recipient", flat=True)) == {alice.owner.email}

    def test_who_is_suspended_already_keeps_his_reason(self, alice):
        suspend_workspace(alice.workspace, reason="Did not pay.")
        count(alice.workspace, sent=100, bounced=100)
        judge()
        alice.workspace.refresh_from_db()
        assert alice.workspace.suspended_reason == "Did not pay."
        assert not SystemMail.objects.exists()

    @pytest.mark.parametrize("bounced", [501, 1_001])
    def test_sweeping_again_says_nothing_again(self, alice, bounced):
        count(alice.workspace, sent=10_000, bounced=bounced)
        for _ in range(3):
            judge()
        assert len(acts(alice.workspace)) == 1
        assert SystemMail.objects.count() == 1

    def test_a_late_sweep_does_not_undo_what_staff_did_meanwhile(self, alice, monkeypatch):
        count(alice.workspace, sent=100, bounced=100)
        old = read_rates()
        judge()
        lift_suspension(alice.workspace)
        monkeypatch.setattr("system_mail.reputation.services.read_rates", lambda: old)
        judge()
        assert not is_suspended(alice.workspace)

    def test_one_that_cannot_be_judged_holds_up_no_other(self, alice, bob, monkeypatch):
        for account in (alice, bob):
            count(account.workspace, sent=100, complained=20)
        refused = read_rates()[0].workspace_id

        def pause(rates, limit, real=services._pause):
            if rates.workspace_id == refused:
                raise OperationalError("canceling statement due to lock timeout")
            real(rates, limit)

        monkeypatch.setattr(services, "_pause", pause)
        judge()
        assert {account.workspace.id: is_suspended(account.workspace) for account in (alice, bob)} == {
            account.workspace.id: account.workspace.id != refused for account in (alice, bob)
        }

    def test_any_name_and_any_figure_fit(self, alice):
        Workspace.objects.update(name="{0} %s\r\nBcc: x@y.example " + "n" * 70)
        count(alice.workspace, sent=10**15, bounced=10**15 - 1)
        judge()
        alice.workspace.refresh_from_db()
        assert 150 < len(alice.workspace.suspended_reason) <= 200
        assert "\n" not in SystemMail.objects.get().subject
        assert "\nBcc" not in SystemMail.objects.get().text


class TestWarning:
    def test_a_warning_tells_the_figure_and_leaves_mail_alone(self, alice, api: Api):
        count(alice.workspace, sent=10_000, bounced=700)
        judge()
        figure = "700 of 10,000 recipients in 7 days were refused for their address: 7.00 %, above the limit of 5 %."
        assert AuditEntry.objects.latest("id").about == figure
        assert figure in SystemMail.objects.get().text
        assert api.post("/emails/send", mail()).status_code == 202

    @pytest.mark.parametrize(("age", "warnings"), [(DAYS * 24 - 1, 1), (DAYS * 24 + 1, 2)])
    def test_it_comes_again_after_a_week(self, alice, age, warnings):
        count(alice.workspace, sent=10_000, bounced=700)
        judge()
        Workspace.objects.update(bounces_warned_at=Now() - timedelta(hours=age))
        judge()
        assert len(acts(alice.workspace)) == warnings

    def test_a_warning_of_one_kind_does_not_hide_the_other(self, alice):
        count(alice.workspace, sent=10_000, bounced=700)
        judge()
        count(alice.workspace, complained=11)
        judge()
        assert acts(alice.workspace) == ["owners_warned", "owners_warned"]

    def test_who_was_warned_is_suspended_when_it_gets_worse(self, alice):
        count(alice.workspace, sent=10_000, bounced=700)
        judge()
        count(alice.workspace, bounced=301)
        judge()
        assert acts(alice.workspace) == ["owners_warned", "workspace_suspended"]


class TestLifting:
    """What left before a suspension counts no more after it, whenever it is told."""

    @pytest.fixture(params=[1, 30, 100], ids=["an hour", "a day", "four days"])
    def lifted(self, alice, request):
        """Alice's workspace, suspended that many hours ago and lifted now."""
        count(alice.workspace, sent=1_000, bounced=900, left_at=timezone.now() - timedelta(hours=request.param))
        fold()
        judge()
        Workspace.objects.update(suspended_at=F("suspended_at") - timedelta(hours=request.param))
        lift_suspension(alice.workspace)
        return alice.workspace

    def test_old_figures_do_not_suspend_again(self, lifted):
        judge()
        assert acts(lifted) == ["workspace_suspended", "suspension_lifted"]

    @pytest.mark.parametrize("folded", [True, False])
    def test_what_leaves_afterwards_is_judged(self, lifted, folded):
        count(lifted, sent=100, bounced=60)
        if folded:
            fold()
        (found,) = read_rates()
        assert (found.sent, found.counts[BOUNCED]) == (100, 60)
        judge()
        assert is_suspended(lifted)

    def test_a_late_complaint_about_what_left_before_counts_before(self, lifted):
        before = Workspace.objects.get().judged_from
        count(lifted, complained=500, left_at=before)
        judge()
        assert not is_suspended(lifted)

    def test_a_warning_may_come_again(self, alice):
        count(alice.workspace, sent=10_000, bounced=700)
        judge()
        suspend_workspace(alice.workspace, reason="x")
        lift_suspension(alice.workspace)
        alice.workspace.refresh_from_db()
        assert (alice.workspace.bounces_warned_at, alice.workspace.complaints_warned_at) == (None, None)

    def test_lifting_what_is_not_suspended_forgives_nothing(self, alice):
        lift_suspension(alice.workspace)
        count(alice.workspace, sent=100, bounced=100)
        judge()
        assert is_suspended(alice.workspace)


class TestCounting:
    """What hosts and people say of real mail is what a workspace is judged by."""

    @pytest.mark.parametrize(
        ("outcome", "found"),
        [
            (NOBODY, (1, 0, 1)),
            # Refused because of us or of the content: that may be the operator's own fault.
            (BLOCKED, (0, 0, 0)),
            (WORDLESS, (0, 0, 0)),
            (FAILED, (0, 0, 0)),
            (DeliveryOutcome(DeliveryStatus.SENT, Reply(250, "ok")), (1, 0, 0)),
            (DeliveryOutcome(DeliveryStatus.DELIVERED, Reply(250, "ok")), (1, 0, 0)),
            (DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(451, "later"), "temporary"), (0, 0, 0)),
        ],
    )
    def test_a_hand_over(self, alice, api, outcome, found):
        send_one(alice.workspace, outcome=outcome)
        assert rated(alice.workspace) == found

    @pytest.mark.parametrize(
        ("kind", "fault", "found"),
        [
            (Event.Kind.BOUNCED, True, (1, 0, 1)),
            (Event.Kind.BOUNCED, False, (1, 0, 0)),
            (Event.Kind.COMPLAINED, False, (1, 1, 0)),
            (Event.Kind.UNSUBSCRIBED, False, (1, 0, 0)),
            (Event.Kind.DELIVERED, False, (1, 0, 0)),
        ],
    )
    def test_a_report_once_however_often_it_comes(self, alice, api, kind, fault, found):
        recipient = send_one(alice.workspace)
        for message in ("a", "b"):
            report = Reported(recipient.id, kind, {"message": message, "reason": "x"}, is_recipient_fault=fault)
            record_reports([report, report])
        assert rated(alice.workspace) == found

    def test_two_ways_to_tell_one_bounce_at_once_are_one(self, alice, api):
        recipient = send_one(alice.workspace)
        told = [Reported(recipient.id, Event.Kind.BOUNCED, {"code": code}, is_recipient_fault=True) for code in (1, 2)]
        assert record_reports(told) == [True, True]
        assert rated(alice.workspace) == (1, 0, 1)

    def test_a_report_is_counted_in_the_hour_in_which_the_mail_left(self, alice, api):
        recipient = send_one(alice.workspace)
        Recipient.objects.update(sent_at=Now() - timedelta(days=DAYS + 1))
        record_reports([Reported(recipient.id, Event.Kind.COMPLAINED)])
        assert rated(alice.workspace) == (1, 1, 0)
        with connection.cursor() as cursor:
            cursor.execute("SELECT now() - hour FROM analytics_tally WHERE key = 'rated.complained'")
            ((age,),) = cursor.fetchall()
        assert timedelta(days=DAYS + 1) <= age < timedelta(days=DAYS + 1, hours=1)

    @pytest.mark.parametrize("address", ["bounced+x@simulator.test", "Delivered@SIMULATOR.test"])
    def test_the_simulator_neither_harms_nor_helps(self, alice, api, address):
        recipient = send_one(alice.workspace, address, outcome=NOBODY)
        record_reports([Reported(recipient.id, Event.Kind.COMPLAINED)])
        assert rated(alice.workspace) == (0, 0, 0)


class TestStatement:
    def test_as_many_statements_for_many_workspaces_as_for_one(self, alice):
        count(alice.workspace, sent=10_000, bounced=60)
        with CaptureQueriesContext(connection) as few:
            judge()
        for number in range(5):
            count(make_account(f"more{number}").workspace, sent=10_000, bounced=60)
        with CaptureQueriesContext(connection) as many:
            judge()
        assert len(read_rates()) == 6
        assert len(few) == len(many)
        assert sum("analytics_tally" in query["sql"] for query in many) == 1

    def test_it_reads_the_tallies_by_their_indexes_and_no_email(self, alice):
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN {RATES}", values())
            plan = "\n".join(row[0] for row in cursor.fetchall())
        assert "emails_" not in plan
        assert "one_tally_a_day" in plan
        assert "one_tally_an_hour" in plan
        assert "delta_workspace" in plan

    def test_what_belongs_to_no_workspace_is_passed_over(self, alice):
        for stranger in (counters.SERVICE, new_id("ws_")):
            counters.add([(counters.CounterKey(stranger, timezone.now(), BOUNCED.value), 100)])
        assert read_rates() == []
