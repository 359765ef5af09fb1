"""Alerts on the time to send, on deferrals and on waiting emails."""

import time
from datetime import timedelta

import pytest
from django.conf import settings
from django.db.models import F
from django.utils import timezone

from alerts.models import Alert
from alerts.recent import MINIMUM_RECIPIENTS
from alerts.values import read_values
from alerts.waiting import COUNT_WAITING
from alerts.watched_value import Share
from console.system_mail.models import SystemMail
from console.system_mail.tasks import check_watched_values
from core.counters import counters
from core.counters.latency import BOUNDS, Latency, TimedGroup, bucket_of, latency_changes
from core.counters.models import CounterDelta, HourlyCounter
from core.delivery.bounces.replies import DeliveryOutcome
from core.lib.worker.stages import Stage
from core.workspaces.account_status import suspend_workspace
from core.workspaces.key_limits import NO_LIMITS, KeyLimits
from core.workspaces.models import Workspace
from emails.accept.batches import create_batch, pause_batch
from emails.models import EmailBatch, QueueEntry, ReceiverPace
from emails.sending.outcomes import SendResult, record_results
from events.models import Event
from streams.services import create_stream
from tests.alerts.builders import fold, make_alert
from tests.conftest import Account, Api, make_key
from tests.emails.builders import BOUNCED, LATER, OK, PARKED, accept, claim_entries, send
from tests.plans import plan_of, prefer_indexes
from tests.rows import each

pytestmark = pytest.mark.django_db


def kinds() -> list[str]:
    return list(Event.objects.filter(kind__startswith="alert.").values_list("kind", flat=True))


def value_of(alert: Alert) -> float | None:
    value = read_values([alert])[alert.id]
    return value.number if value else None


@pytest.fixture
def workspace(api: Api, alice: Account) -> Workspace:
    """Alice's workspace, with the stream news."""
    create_stream(alice.workspace, slug="news", name="News")
    return alice.workspace


def send_and_record(api: Api, *outcomes: DeliveryOutcome, **fields) -> None:
    """Send an email for each outcome, and attempt them all."""
    for _ in outcomes:
        send(api, **fields)
    attempt(*outcomes)


def attempt(*outcomes: DeliveryOutcome) -> None:
    claims = claim_entries(len(outcomes))
    results = zip(claims, outcomes, strict=True)
    record_results([SendResult(claim, outcome, (), time.monotonic()) for claim, outcome in results])


def make_older(minutes: float, **condition) -> None:
    """Let the entries of the queue have been due earlier."""
    moved = timedelta(minutes=minutes)
    QueueEntry.objects.filter(**condition).update(since=F("since") - moved, due_at=F("due_at") - moved)


class TestWaiting:
    def test_emails_older_than_ten_minutes_begin_and_end_it(self, api, workspace):
        make_alert(workspace, "waiting", 2)
        send(api)
        send(api, to=["a@example.com", "b@example.com"])
        make_older(9.9)
        check_watched_values()
        assert kinds() == []
        make_older(0.2)
        for _ in range(2):
            check_watched_values()
        assert kinds() == ["alert.triggered"]
        assert Event.objects.get(kind="alert.triggered").payload["value"] == 2.0
        email = SystemMail.objects.get()
        assert email.subject == "Alert in alice: Waiting emails at 2"
        assert "2 emails have waited for more than 10 minutes." in email.text
        # One of two is below nine tenths.
        attempt(OK)
        check_watched_values()
        assert kinds() == ["alert.triggered", "alert.resolved"]

    def test_each_stage_in_which_an_email_waits_counts(self, api, workspace):
        alert = make_alert(workspace, "waiting", 1)
        for number in range(5):
            send(api, to=[f"{number}@example.com"])
        deferred, parked, _claimed = claim_entries(3)
        record_results([SendResult(deferred, LATER), SendResult(parked, PARKED)])
        paced = QueueEntry.objects.filter(stage=Stage.READY).first()
        assert paced
        QueueEntry.objects.filter(pk=paced.pk).update(
            stage=Stage.PACED, pair=ReceiverPace.objects.create(receiver="google").id
        )
        make_older(11)
        assert value_of(alert) == 5
        stages = QueueEntry.objects.order_by("stage").values_list("stage", flat=True)
        assert set(stages) == {Stage.WAITING, Stage.READY, Stage.LEASED, Stage.PACED}

    def test_a_retry_that_is_ready_again_counts_by_its_age(self, api, workspace):
        alert = make_alert(workspace, "waiting", 1)
        send(api)
        QueueEntry.objects.update(since=F("since") - timedelta(hours=1))
        assert value_of(alert) == 1

    def test_what_the_sender_asked_for_is_no_wait(self, api, workspace):
        alert = make_alert(workspace, "waiting", 1)
        send(api, scheduledFor=(timezone.now() + timedelta(hours=2)).isoformat())
        make_older(60)
        assert value_of(alert) == 0
        make_older(71)
        # It should have been sent.
        assert value_of(alert) == 1

    def test_a_paused_batch_and_a_paused_stream_wait_for_the_sender(self, api, workspace):
        alert = make_alert(workspace, "waiting", 1)
        batch = create_batch(workspace, limits=NO_LIMITS)
        accept(workspace, scheduled_for=timezone.now() + timedelta(minutes=5), batch_id=batch.id)
        pause_batch(batch, limits=NO_LIMITS)
        send(api, stream="news")
        make_older(20)
        QueueEntry.objects.filter(stage=Stage.READY).update(stage=Stage.HELD)
        assert value_of(alert) == 0
        EmailBatch.objects.update(state=EmailBatch.State.OPEN)
        assert value_of(alert) == 1

    def test_streams_are_counted_apart(self, api, workspace, bob):
        alerts = {stream: make_alert(workspace, "waiting", 1, stream=stream) for stream in ("", "main", "news")}
        other = make_alert(bob.workspace, "waiting", 1)
        send(api)
        for _ in range(2):
            send(api, stream="news")
        make_older(11)
        assert {stream: value_of(alert) for stream, alert in alerts.items()} == {"": 3, "main": 1, "news": 2}
        assert value_of(other) == 0

    def test_test_emails_and_the_simulator_do_not_count(self, api, workspace):
        alert = make_alert(workspace, "waiting", 1)
        send(Api(make_key(workspace, "sending_access", limits=KeyLimits(is_test=True))))
        send(api, to=[f"deferred@{settings.SIMULATOR_DOMAIN}"])
        make_older(11)
        assert value_of(alert) == 0

    def test_a_suspended_workspace_waits(self, api, workspace):
        alert = make_alert(workspace, "waiting", 1)
        send(api)
        make_older(11)
        suspend_workspace(workspace, reason="spam")
        assert value_of(alert) == 1

    def test_the_count_reads_indexes_only(self, workspace):
        prefer_indexes()
        plan = plan_of(COUNT_WAITING, {"workspaces": [], "minutes": 10, "simulated": []})
        indexes = ("pending_ready_by_rank", "pending_waiting", "pending_leased", "pending_scheduled", "pending_paced")
        assert [name for name in indexes if name not in plan] == []
        assert "Seq Scan on emails" not in plan
        # The waiting entries of all workspaces.
        assert "pending_timed" not in plan


class TestDeferredShare:
    @each(("deferred", "triggered"), [(3, False), (4, True)])
    def test_it_begins_at_its_share(self, api, workspace, deferred, triggered):
        make_alert(workspace, "deferred_share", 20)
        send_and_record(api, *[LATER] * deferred, *[OK] * (20 - deferred))
        check_watched_values()
        assert kinds() == ["alert.triggered"] * triggered
        if triggered:
            assert "4 of 20 recipients since the previous hour were deferred" in SystemMail.objects.get().text

    @each("folded", [True, False])
    def test_only_first_attempts_count(self, api, workspace, folded):
        alert = make_alert(workspace, "deferred_share", 50)
        send_and_record(api, *[LATER] * 5, *[OK] * 10, *[BOUNCED] * 5)
        for outcome in (LATER, OK):
            QueueEntry.objects.update(stage=Stage.READY)
            attempt(*[outcome] * 5)
        if folded:
            fold()
        assert read_values([alert]) == {alert.id: Share(5, 20)}

    def test_it_has_the_present_hour_and_the_one_before(self, api, workspace):
        alert = make_alert(workspace, "deferred_share", 50)
        send_and_record(api, *[LATER] * 20)
        assert value_of(alert) == 100
        CounterDelta.objects.update(hour=F("hour") - timedelta(hours=1))
        assert value_of(alert) == 100
        fold()
        assert value_of(alert) == 100
        HourlyCounter.objects.update(hour=F("hour") - timedelta(hours=1))
        assert value_of(alert) is None

    def test_of_fewer_recipients_there_is_none(self, api, workspace):
        alert = make_alert(workspace, "deferred_share", 50)
        send_and_record(api, *[LATER] * (MINIMUM_RECIPIENTS - 1))
        assert value_of(alert) is None

    def test_streams_are_counted_apart(self, api, workspace):
        alerts = {s: make_alert(workspace, "deferred_share", 50, stream=s) for s in ("", "main", "news")}
        send_and_record(api, *[LATER] * 10, *[OK] * 10)
        send_and_record(api, *[LATER] * 5, *[OK] * 35, stream="news")
        assert {stream: value_of(alert) for stream, alert in alerts.items()} == {"": 25, "main": 50, "news": 12.5}

    def test_test_emails_and_the_simulator_do_not_count(self, api, workspace):
        alert = make_alert(workspace, "deferred_share", 50)
        send_and_record(Api(make_key(workspace, "sending_access", limits=KeyLimits(is_test=True))), *[LATER] * 20)
        send_and_record(api, *[LATER] * 20, to=[f"deferred@{settings.SIMULATOR_DOMAIN}"])
        assert value_of(alert) is None


class TestLatency:
    def count(self, workspace: Workspace, seconds: float, recipients: int, *, stream: str = "") -> None:
        group = TimedGroup(workspace.id, stream, "", Latency.OUTCOME, bucket_of(seconds))
        counters.add(latency_changes({group: recipients}, at=timezone.now()))

    def test_the_95th_percentile_begins_and_ends_it(self, workspace):
        alert = make_alert(workspace, "latency_p95", 60)
        self.count(workspace, 1, 95)
        self.count(workspace, 300, 5)
        check_watched_values()
        assert kinds() == []
        self.count(workspace, 300, 5)
        check_watched_values()
        assert kinds() == ["alert.triggered"]
        value = Event.objects.get(kind="alert.triggered").payload["value"]
        assert 259 < value < 321
        email = SystemMail.objects.get()
        assert email.subject == "Alert in alice: 95th percentile of the time to send at 60 s"
        assert f"95% of 105 recipients since the previous hour had an outcome within {value:g} s." in email.text
        self.count(workspace, 1, 1000)
        check_watched_values()
        assert kinds() == ["alert.triggered", "alert.resolved"]
        assert value_of(alert) < 54

    def test_it_has_a_minimum_of_recipients(self, workspace):
        alert = make_alert(workspace, "latency_p95", 60)
        self.count(workspace, 300, MINIMUM_RECIPIENTS - 1)
        assert value_of(alert) is None
        self.count(workspace, 300, 1)
        assert value_of(alert) > 60

    def test_streams_are_measured_apart(self, workspace):
        alerts = {s: make_alert(workspace, "latency_p95", 60, stream=s) for s in ("", "main", "news")}
        self.count(workspace, 1, 1000)
        self.count(workspace, 500, 20, stream="news")
        values = {stream: value_of(alert) for stream, alert in alerts.items()}
        assert values[""] < 2
        assert values["main"] < 2
        assert values["news"] > 394

    def test_the_largest_threshold_is_the_largest_time(self, workspace):
        alert = make_alert(workspace, "latency_p95", BOUNDS[-1])
        self.count(workspace, 10 * BOUNDS[-1], 20)
        assert value_of(alert) == BOUNDS[-1]
