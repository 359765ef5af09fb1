"""Paces of receivers in the database: shared by processes, and entries that wait for them (docs/decisions/0362)."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now

from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.delivery.bounces.signals import SLOW
from core.delivery.pacing.pace import PaceLimits
from core.delivery.pacing.pairs import PaceSignal, PairKey, PairReport
from core.delivery.transports.transports_file import single_transport
from core.lib.worker.stages import Stage
from emails.models import Email, QueueEntry, ReceiverPace, Recipient
from emails.pacing import paces
from emails.pacing.paces import exchange_reports, release_due
from emails.queue_stats import read_queue_stats, stats_cache
from emails.sending.outcomes import SendResult, record_results
from emails.sending.scheduling import promote_due
from events.models import Event
from streams.services import create_stream
from tests.conftest import make_domain
from tests.emails.builders import OK, accept, change_workspace, claim_entries, deliver_all, event_kinds, send

pytestmark = pytest.mark.django_db
KEY = PairKey("192.0.2.1", "google")
REPLY = "421 4.7.28 Gmail has detected an unusual rate"


@pytest.fixture
def other_workspace(bob):
    make_domain(bob.workspace, "bob.example")
    return bob.workspace


@pytest.fixture(autouse=True)
def _direct(settings):
    settings.DELIVERY_TRANSPORT = "direct"
    settings.TRANSPORTS = single_transport("direct")


def report(*, key=KEY, process="one", needed=1, **fields):
    limits = PaceLimits(settings_of(key).connections)
    values = {"open": 0, "wanted": needed, "limits": limits, **fields}
    (grant,) = exchange_reports([PairReport(key, needed=needed, **values)])
    return grant


def settings_of(key):
    from django.conf import settings

    return settings.RECEIVERS.receiver_of_key(key.receiver)


def slow(**fields):
    return report(signals=(PaceSignal(SLOW, began=0.0, reply=REPLY),), **fields)


def paced(number, *, at_most=0):
    outcome = DeliveryOutcome(DeliveryStatus.PARKED, Reply(0, "The receiver asked for less email."))
    outcome = replace(outcome, reason="destination_full", waits_for="receiver_pace", pair=number)
    return replace(outcome, paced_at_most=timedelta(seconds=at_most))


def hold(number, *, at_most=0):
    """Let all ready entries wait for a pair, for at most so many seconds by their route."""
    record_results([SendResult(claim, paced(number, at_most=at_most)) for claim in claim_entries()])


def seconds_left():
    """Return the seconds until the only entry is due."""
    return QueueEntry.objects.values_list(F("due_at") - Now(), flat=True).get().total_seconds()


def pass_time(seconds):
    """Let so many seconds of the wait pass."""
    passed = timedelta(seconds=seconds)
    QueueEntry.objects.update(due_at=F("due_at") - passed, paced_since=F("paced_since") - passed)
    promote_due()


def ready():
    return QueueEntry.objects.filter(stage=Stage.READY)


def make_release_due():
    ReceiverPace.objects.filter(release_at__isnull=False).update(release_at=Now() - timedelta(seconds=1))


class TestExchange:
    def test_divides_connections_among_processes(self, monkeypatch):
        first = report(needed=9)
        monkeypatch.setattr(paces, "_process", lambda: "two")
        second = report(needed=9)
        assert (first.connections, second.connections) == (2, 0)
        assert first.number == second.number == ReceiverPace.objects.get().id

    def test_keeps_what_was_learnt_and_the_reply_for_the_staff(self):
        assert slow(accepted=3).is_limited
        assert report().is_limited
        row = ReceiverPace.objects.get()
        assert (row.signal, row.accepted, row.slowed) == (REPLY, 3, 1)
        assert row.signal_at is not None

    def test_counts_of_a_day_begin_again_on_the_next(self):
        report(accepted=3)
        ReceiverPace.objects.update(day=F("day") - timedelta(days=1))
        report(accepted=2)
        assert ReceiverPace.objects.get().accepted == 2

    def test_knows_many_pairs_in_a_few_statements(self, django_assert_num_queries):
        keys = [PairKey("", f"mx{number}.example") for number in range(50)]
        reports = [PairReport(key, open=0, needed=1, wanted=1, limits=PaceLimits()) for key in keys]
        exchange_reports(reports)
        with django_assert_num_queries(4):
            # With the savepoint of the test.
            grants = exchange_reports(reports)
        assert {grant.connections for grant in grants} == {1}


class TestWaiting:
    def test_uses_no_attempt_and_records_no_event(self, workspace):
        accept(workspace, count=3)
        events = Event.objects.count()
        hold(report().number)
        assert set(QueueEntry.objects.values_list("stage", "attempts", "waits_for")) == {
            (Stage.PACED, 0, "receiver_pace")
        }
        assert Event.objects.count() == events
        stats_cache.clear()
        assert read_queue_stats(workspace).delayed == 3
        assert not claim_entries()

    def test_ends_with_a_release(self, workspace):
        accept(workspace, count=3)
        number = report().number
        hold(number)
        assert not release_due()
        assert set(QueueEntry.objects.values_list("stage", "pair")) == {(Stage.READY, number)}
        stats_cache.clear()
        assert read_queue_stats(workspace).delayed == 0
        deliver_all(OK)
        assert set(Email.objects.values_list("status", flat=True)) == {"delivered"}

    def test_lasts_while_the_rate_lets_nothing_leave(self, workspace):
        accept(workspace, count=5)
        number = slow().number
        hold(number)
        assert release_due()
        assert not ready().exists()
        # A message a minute, the floor.
        values = ReceiverPace.objects.get().pace
        ReceiverPace.objects.update(pace={**values, "tokens_at": values["tokens_at"] - 61})
        make_release_due()
        assert release_due()
        assert ready().count() == 1

    def test_ends_when_the_recipient_is_too_old(self, workspace, settings):
        settings.DELIVERY_MAX_AGE = 600
        accept(workspace)
        number = slow().number
        hold(number)
        assert seconds_left() == pytest.approx(600, abs=5)
        QueueEntry.objects.update(due_at=Now() - timedelta(seconds=1), since=Now() - timedelta(seconds=601))
        promote_due()
        hold(number)
        assert (Recipient.objects.get().state, event_kinds()[-1]) == ("failed", "failed")

    def test_is_shown(self, api, settings):
        email_id = send(api)
        number = slow().number
        hold(number)
        wait = api.get(f"/emails/{email_id}").json()["waitingFor"]
        assert (wait["cause"], wait["receiver"]) == ("receiver_pace", "google")
        assert wait["perMinute"] == pytest.approx(1, 0.1)
        assert wait["detail"].startswith("Google has asked for less email. 1 messages a minute leave for it now")

    def test_keeps_the_transport_of_a_pinned_message(self, workspace):
        accept(workspace)
        QueueEntry.objects.update(handed_to="own")
        hold(report().number)
        assert QueueEntry.objects.get().handed_to == "own"


class TestAWaitWithALimit:
    def test_ends_after_so_many_seconds_for_the_next_transport(self, workspace):
        accept(workspace)
        number = slow().number
        hold(number, at_most=300)
        assert seconds_left() == pytest.approx(300, abs=5)
        pass_time(299)
        assert not claim_entries()
        pass_time(2)
        (claim,) = claim_entries()
        assert (claim.has_waited, claim.attempt) == (True, 1)

    def test_is_looked_at_again_each_time_that_it_has_doubled(self, workspace):
        accept(workspace)
        number = slow().number
        hold(number, at_most=300)
        for waited in (300, 600, 1200):
            pass_time(seconds_left() + 1)
            hold(number, at_most=300)
            assert seconds_left() == pytest.approx(waited, abs=10)

    def test_includes_the_time_before_a_release_without_a_connection(self, workspace):
        accept(workspace)
        number = report().number
        hold(number, at_most=300)
        pass_time(200)
        release_due()
        hold(number, at_most=300)
        assert seconds_left() == pytest.approx(100, abs=5)
        QueueEntry.objects.update(paced_since=F("paced_since") - timedelta(seconds=200))
        make_release_due()
        release_due()
        (claim,) = claim_entries()
        assert not claim.has_waited
        record_results([SendResult(claim, paced(number, at_most=300))])
        assert seconds_left() == pytest.approx(0, abs=5)
        promote_due()
        assert claim_entries()[0].has_waited

    def test_never_exceeds_the_age_of_the_recipient(self, workspace, settings):
        settings.DELIVERY_MAX_AGE = 600
        accept(workspace)
        number = slow().number
        hold(number, at_most=900)
        assert seconds_left() == pytest.approx(600, abs=5)

    @pytest.mark.parametrize("outcome", [
        DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(451, "4.7.1 Greylisted"), "greylisted"),
        DeliveryOutcome(DeliveryStatus.PARKED, Reply(0, "No transport works."), "destination_shut"),
    ])  # fmt: skip
    def test_begins_anew_after_a_release_that_led_elsewhere(self, workspace, outcome):
        accept(workspace)
        number = report().number
        hold(number, at_most=300)
        release_due()
        record_results([SendResult(claim, outcome) for claim in claim_entries()])
        QueueEntry.objects.update(stage=Stage.READY, due_at=Now())
        (claim,) = claim_entries()
        assert not claim.has_waited
        record_results([SendResult(claim, paced(number, at_most=300))])
        assert seconds_left() == pytest.approx(300, abs=5)

    def test_stays_over_while_the_next_transport_is_busy(self, workspace):
        accept(workspace)
        number = slow().number
        hold(number, at_most=300)
        pass_time(301)
        busy = DeliveryOutcome(DeliveryStatus.PARKED, Reply(0, "All connections are in use."), "destination_full")
        record_results([SendResult(claim, busy) for claim in claim_entries()])
        QueueEntry.objects.update(stage=Stage.READY, due_at=Now())
        assert claim_entries()[0].has_waited

    def test_is_shown(self, api):
        email_id = send(api)
        hold(slow().number, at_most=300)
        wait = api.get(f"/emails/{email_id}").json()["waitingFor"]
        assert "another way" in wait["detail"]


class TestRelease:
    def test_gives_each_workspace_the_same_share(self, workspace, other_workspace):
        accept(workspace, count=20)
        accept(other_workspace, count=3)
        number = report().number
        hold(number)
        hold(number)
        pair = paces._release(number, 6)
        assert sorted([pair.count(workspace.id), pair.count(other_workspace.id)]) == [3, 3]
        assert len(paces._release(number, 6)) == 6

    def test_prefers_urgent_streams_then_age(self, alice, api):
        create_stream(alice.workspace, slug="codes", name="Codes", priority="high")
        create_stream(alice.workspace, slug="news", name="News", priority="low")
        ids = [send(api, stream=stream) for stream in ("news", "main", "codes", "main")]
        number = report().number
        hold(number)
        released = []
        for _ in ids:
            paces._release(number, 1)
            (email_id,) = set(ready().values_list("recipient__email", flat=True)) - {*released}
            released.append(email_id)
        assert released == [ids[2], ids[1], ids[3], ids[0]]

    def test_leaves_entries_of_a_suspended_workspace(self, workspace, other_workspace):
        accept(workspace, count=2)
        accept(other_workspace, count=2)
        number = report().number
        hold(number)
        hold(number)
        change_workspace(workspace, suspended_at=Now())
        assert paces._release(number, 4) == [other_workspace.id] * 2

    def test_costs_the_same_for_any_number_of_waiting_entries(self, workspace, django_assert_max_num_queries):
        accept(workspace, count=300)
        number = slow().number
        while claims := claim_entries():
            record_results([SendResult(claim, paced(number)) for claim in claims])
        make_release_due()
        with django_assert_max_num_queries(8):
            release_due()
        assert QueueEntry.objects.filter(stage=Stage.PACED).count() >= 298

    def test_ends_every_wait_without_direct_delivery(self, workspace, settings):
        accept(workspace, count=3)
        hold(slow().number)
        settings.DELIVERY_TRANSPORT, settings.TRANSPORTS = "smtp", single_transport("smtp")
        assert not release_due()
        assert ready().count() == 3

    def test_finds_entries_that_came_while_nothing_waited(self, workspace):
        accept(workspace)
        number = report().number
        hold(number)
        release_due()
        deliver_all(OK)
        assert ReceiverPace.objects.get().release_at is None
        accept(workspace)
        hold(number)
        release_due()
        assert ready().count() == 1
