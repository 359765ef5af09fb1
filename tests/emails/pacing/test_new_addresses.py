"""New addresses in the database: their numbers, and what waits for them (docs/decisions/0366)."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F

from core.delivery.pacing.pairs import PairKey, PairReport
from core.delivery.transports.transports_file import read_transports
from core.lib.worker.stages import Stage
from emails.models import QueueEntry, ReceiverPace
from emails.pacing import paces
from emails.pacing.paces import exchange_reports, limits_of, release_due
from tests.emails.builders import accept, send
from tests.emails.pacing.test_paces import hold, make_release_due

pytestmark = pytest.mark.django_db
NEW, WARM = PairKey("127.0.0.12", "google"), PairKey("127.0.0.11", "google")


@pytest.fixture
def write(settings, tmp_path):
    """Return a function that writes the file and reads it, as at the start."""
    path = tmp_path / "transports.yaml"

    def write_file(*addresses, more=""):
        path.write_text(
            f"transports: {{own: {{kind: direct, sourceAddresses: [{', '.join(addresses)}]{more}}}}}\n"
            "routes: {default: {use: [own]}}\n"
        )
        settings.TRANSPORTS, settings.DELIVERY_TRANSPORT = read_transports(path), "named"

    return write_file


@pytest.fixture
def today():
    return datetime.now(UTC).date()


def new(day):
    return f"{{address: {NEW.source}, since: {day}}}"


@pytest.fixture
def named(write, today):
    write(WARM.source, new(today))


@pytest.fixture
def alone(write, today):
    write(new(today))


def report(key=NEW, **fields):
    values = {"open": 0, "needed": 1, "wanted": 1, "limits": limits_of(key), **fields}
    (grant,) = exchange_reports([PairReport(key, **values)])
    return grant


class TestNumbers:
    def test_are_shared_by_processes(self, named, monkeypatch, today):
        first = report(further=40)
        monkeypatch.setattr(paces, "_process", lambda: "two")
        second = report(further=40)
        assert (first.messages, second.messages) == (40, 10)
        assert ReceiverPace.objects.get().began_on == today

    def test_of_the_next_day_follow_from_the_row(self, write, today):
        write(WARM.source, new(today - timedelta(days=2)))
        report(accepted=50)
        assert report(further=1).is_used_up
        days = {"day": F("day") - timedelta(days=1), "began_on": F("began_on") - timedelta(days=2)}
        ReceiverPace.objects.update(**days)
        assert report(further=500, accepted=3).messages == 97
        row = ReceiverPace.objects.get()
        assert (row.accepted, row.accepted_before) == (3, 50)

    def test_the_day_before_is_forgotten_two_days_later(self, named):
        report(WARM, accepted=50)
        ReceiverPace.objects.update(day=F("day") - timedelta(days=2))
        report(WARM)
        row = ReceiverPace.objects.get()
        assert (row.accepted, row.accepted_before, row.began_on) == (0, 0, None)

    def test_cost_no_further_statement(self, named, django_assert_num_queries):
        report(WARM)
        report(NEW)
        for key in (WARM, NEW):
            with django_assert_num_queries(4):
                # With the savepoint of the test.
                report(key, further=1)


class TestWaiting:
    def used_up(self):
        report(accepted=50)
        return ReceiverPace.objects.get(source=NEW.source).id

    def test_ends_at_midnight(self, alone, workspace):
        accept(workspace, count=3)
        hold(self.used_up())
        assert release_due()
        assert not QueueEntry.objects.filter(stage=Stage.READY).exists()
        ReceiverPace.objects.update(day=F("day") - timedelta(days=1))
        make_release_due()
        release_due()
        assert QueueEntry.objects.filter(stage=Stage.READY).count() == 3

    def test_ends_when_another_address_may_send(self, named, workspace):
        accept(workspace, count=2)
        hold(self.used_up())
        report(WARM)
        release_due()
        assert QueueEntry.objects.filter(stage=Stage.READY).count() == 2

    def test_does_not_end_so_if_the_file_forbids_it(self, write, today, workspace):
        write(WARM.source, new(today), more=", overflow: wait")
        accept(workspace, count=2)
        hold(self.used_up())
        report(WARM)
        release_due()
        assert not QueueEntry.objects.filter(stage=Stage.READY).exists()

    def test_is_explained(self, alone, api):
        email_id = send(api)
        hold(self.used_up())
        wait = api.get(f"/emails/{email_id}").json()["waitingFor"]
        assert (wait["cause"], wait["receiver"], wait["perMinute"]) == ("receiver_pace", "google", 0)
        assert wait["detail"].startswith(
            "The address that sends to Google is new. It has sent its 50 messages of the day"
        )

    def test_for_the_first_day_is_explained(self, write, today, api):
        write(new(today + timedelta(days=3)))
        email_id = send(api)
        report()
        hold(ReceiverPace.objects.get().id)
        detail = api.get(f"/emails/{email_id}").json()["waitingFor"]["detail"]
        assert detail.startswith("The address that sends to Google sends nothing before its first day")
