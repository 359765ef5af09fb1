"""The state of the pace of each receiver, as the staff sees it (docs/decisions/0363)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings
from django.db.models import F
from django.db.models.functions import Now

from core.delivery.receivers import ReceiverTable
from emails.models import QueueEntry, ReceiverPace
from emails.receivers.changes import pin_rate, suspend_pair
from emails.receivers.pair_status import find_pairs, read_pair_statuses, read_slow_receivers, read_totals
from tests.conftest import make_domain
from tests.emails.builders import accept
from tests.emails.pacing.test_paces import hold
from tests.emails.receivers.builders import REPLY, SOURCE, make_limited, make_pair, make_suspended

pytestmark = pytest.mark.django_db


def statuses(**filters):
    return read_pair_statuses(find_pairs(**filters))


def states():
    return {status.receiver: status.state for status in statuses()}


def change_pace(pair, **values):
    ReceiverPace.objects.filter(id=pair.id).update(pace={**pair.pace, **values})


@pytest.fixture
def pairs():
    return {
        "learning": make_pair("mx.example", accepted=5),
        "limited": make_limited("google", accepted=7),
        "suspended": make_suspended("yahoo", accepted=2),
        "stopped": make_pair("apple"),
    }


class TestStates:
    def test_those_that_nothing_leaves_for_come_first(self, pairs):
        suspend_pair(pairs["stopped"])
        assert [status.state for status in statuses()] == ["stopped", "suspended", "limited", "learning"]

    def test_each_is_explained_by_its_numbers(self, pairs):
        suspend_pair(pairs["stopped"])
        stopped, suspended, limited, learning = statuses()
        assert (learning.per_minute, learning.since, learning.until, learning.reply) == (None, None, None, "")
        assert (limited.name, limited.source, limited.accepted, limited.slowed) == ("Google", SOURCE, 7, 1)
        assert (limited.reply, limited.connections, limited.allowed) == (REPLY, 1, 1)
        assert limited.per_minute > 1
        assert abs(limited.since - limited.replied_at) < timedelta(seconds=1)
        assert (suspended.per_minute, suspended.since) == (0.0, suspended.replied_at)
        assert suspended.until - suspended.since > timedelta(seconds=599)
        assert (stopped.per_minute, stopped.since) == (0.0, ReceiverPace.objects.get(receiver="apple").stopped_at)

    def test_a_suspension_ends_with_its_time(self, pairs):
        change_pace(pairs["suspended"], suspended_until=pairs["suspended"].updated_at.timestamp() - 1)
        assert states()["yahoo"] == "limited"

    @pytest.mark.parametrize(
        ("slowed", "waited", "state"), [(119, 300, "limited"), (300, 59, "limited"), (121, 61, "learning")]
    )
    def test_a_rate_that_nothing_waits_for_is_forgotten(self, pairs, slowed, waited, state):
        now = pairs["limited"].updated_at.timestamp()
        change_pace(pairs["limited"], slowed_at=now - slowed, waited_at=now - waited)
        (status,) = statuses(receiver="google")
        assert (status.state, status.per_minute is None) == (state, state == "learning")

    def test_a_rate_of_the_day_before_yesterday_is_forgotten(self, pairs):
        change_pace(pairs["limited"], waited_at=pairs["limited"].updated_at.timestamp() + 200_000)
        assert states()["google"] == "limited"
        ReceiverPace.objects.update(updated_at=F("updated_at") - timedelta(hours=25))
        assert states()["google"] == "learning"

    def test_a_rate_of_the_table_or_of_the_staff_limits(self, pairs, settings):
        pin_rate(pairs["learning"], per_minute=30)
        (status,) = statuses(receiver="mx.example")
        assert (status.state, status.per_minute, status.pinned, status.since) == ("limited", 30, 30, None)
        table = settings.RECEIVERS
        slow = [replace(one, per_minute=40) if one.key == "apple" else one for one in table.receivers]
        settings.RECEIVERS = ReceiverTable(slow, default=table.default)
        (status,) = statuses(receiver="apple")
        assert (status.state, status.per_minute) == ("limited", 40)

    def test_leases_of_dead_processes_do_not_count(self, pairs):
        ReceiverPace.objects.update(leases={"dead": [3, 3, 1.0]})
        assert {status.connections for status in statuses()} == {0}

    def test_counts_are_those_of_today(self, pairs):
        ReceiverPace.objects.update(day=F("day") - timedelta(days=1))
        assert {(status.accepted, status.slowed) for status in statuses()} == {(0, 0)}


class TestFilters:
    def test_find_a_part_of_a_key_or_of_a_name(self, pairs):
        assert {status.receiver for status in statuses(receiver="MX.exa")} == {"mx.example"}
        assert {status.receiver for status in statuses(receiver=" googl\0")} == {"google"}
        assert statuses(receiver="nothing") == []

    def test_find_a_state(self, pairs):
        assert {status.receiver for status in statuses(state="suspended")} == {"yahoo"}

    def test_a_page_needs_two_statements(self, pairs, django_assert_num_queries):
        with django_assert_num_queries(2):
            assert len(statuses()) == 4


class TestWaiting:
    @pytest.fixture
    def waiting(self, pairs, alice, bob):
        for account in (alice, bob):
            make_domain(account.workspace, f"{account.workspace.name}.example")
        accept(alice.workspace, count=3)
        hold(pairs["limited"].id)
        accept(bob.workspace, count=2)
        hold(pairs["learning"].id)
        return alice.workspace, bob.workspace

    def test_is_counted_by_pair(self, waiting):
        assert {status.receiver: status.waiting for status in statuses() if status.waiting} == {
            "google": 3,
            "mx.example": 2,
        }

    def test_a_workspace_sees_the_receivers_that_its_own_recipients_wait_for(self, waiting):
        (google,) = read_slow_receivers(waiting[0])
        assert (google.name, google.waiting) == ("Google", 3)
        assert google.since == min(
            QueueEntry.objects.filter(workspace_id=waiting[0].id).values_list("since", flat=True)
        )
        assert [one.name for one in read_slow_receivers(waiting[1])] == ["mx.example"]
        QueueEntry.objects.update(stage=1, due_at=Now())
        assert read_slow_receivers(waiting[0]) == []

    def test_totals_have_a_key_for_all_receivers_that_are_not_in_the_table(self, waiting):
        make_pair("another.example", accepted=4)
        totals = {one.receiver: one for one in read_totals()}
        assert totals.keys() == {"google", "yahoo", "apple", "other"}
        other, google = totals["other"], totals["google"]
        assert (other.state, other.pairs, other.accepted, other.waiting, other.connections) == ("learning", 2, 9, 2, 2)
        assert (google.state, google.signals, google.waiting) == ("limited", 1, 3)
        assert len(totals) <= len(settings.RECEIVERS.receivers) + 1

    def test_count_pairs_in_their_first_days(self, pairs):
        today = datetime.now(UTC).date()
        ReceiverPace.objects.filter(receiver="google").update(began_on=today - timedelta(days=29))
        ReceiverPace.objects.filter(receiver="yahoo").update(began_on=today - timedelta(days=30))
        assert {one.receiver: one.new for one in read_totals() if one.new} == {"google": 1}
