"""New addresses in the database: their numbers, and what waits for them (docs/decisions/0366, 0368)."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F

from core.delivery.pacing.pairs import PairKey, PairReport
from core.delivery.transports.transports_file import read_transports
from core.lib.worker.stages import Stage
from emails.models import QueueEntry, ReceiverPace
from emails.pacing import paces
from emails.pacing.paces import exchange_reports, limits_of, release_due
from emails.sources import configured
from emails.sources.configured import current_specs
from emails.sources.own_addresses import CurrentAddresses, first_day, new_addresses, other_sources
from tests.emails.builders import accept, send
from tests.emails.pacing.test_paces import hold, make_release_due

pytestmark = pytest.mark.django_db
NEW, WARM = PairKey("127.0.0.12", "google"), PairKey("127.0.0.11", "google")


@pytest.fixture
def write(settings, tmp_path):
    """Return a function that writes the file; the first one is read at the start."""
    path = tmp_path / "transports.yaml"

    def write_file(*addresses, more=""):
        path.write_text(
            f"transports: {{own: {{kind: direct, sourceAddresses: [{', '.join(addresses)}]{more}}}}}\n"
            "routes: {default: {use: [own]}}\n"
        )
        if str(path) != settings.TRANSPORTS_FILE:
            settings.TRANSPORTS, settings.TRANSPORTS_FILE = read_transports(path), str(path)
            settings.DELIVERY_TRANSPORT = "named"

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


class TestTheFile:
    @pytest.fixture(autouse=True)
    def _at_once(self, monkeypatch):
        monkeypatch.setattr(configured, "CHECK_SECONDS", 0.0)

    def test_takes_effect_without_a_restart(self, write, today):
        write(WARM.source)
        own = CurrentAddresses(current_specs()["own"])
        assert [str(one) for one in own.read().addresses] == [WARM.source]
        write(WARM.source, new(today), more=", overflow: wait")
        assert first_day(NEW.source) == today
        assert {str(one): day for one, day in new_addresses().items()} == {NEW.source: today}
        assert other_sources(WARM.source) == []
        addresses = own.read()
        assert ([str(one) for one in addresses.addresses], addresses.overflows) == ([WARM.source, NEW.source], False)
        write(WARM.source, NEW.source)
        assert (first_day(NEW.source), other_sources(WARM.source)) == (None, [NEW.source])

    def test_with_a_mistake_changes_nothing(self, write, today, caplog):
        write(WARM.source, new(today))
        current_specs()
        write(WARM.source, new("soon"))
        assert first_day(NEW.source) == today
        assert first_day(NEW.source) == today
        assert [record.getMessage() for record in caplog.records] == ["TRANSPORTS_FILE was not read again"]

    def test_is_not_read_while_it_does_not_change(self, write, today, monkeypatch):
        write(WARM.source, new(today))
        current_specs()
        monkeypatch.setattr(configured, "read_transports", lambda _: pytest.fail("read again"))
        assert first_day(NEW.source) == today

    def test_keeps_the_addresses_if_this_machine_has_none_of_the_new_ones(self, write):
        write(WARM.source)
        own = CurrentAddresses(current_specs()["own"])
        write("192.0.2.1")
        assert [str(one) for one in own.read().addresses] == [WARM.source]

    def test_changes_nothing_but_addresses(self, write, settings):
        write(WARM.source)
        current_specs()
        write(WARM.source, more=", perDay: 5")
        assert current_specs()["own"].per_day is None
