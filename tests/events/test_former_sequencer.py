"""Upgrades from versions before 1.0 and the way back: readers get each event once, whichever version sequences."""

from datetime import timedelta

import pytest

from emails.models import Email
from events import former_sequencer
from events.feed import read_feed
from events.former_sequencer import has_feed, return_feed, take_over_feed
from events.kinds import EventKind
from events.models import Event, FeedProgress
from events.recording import NewEvent, record_events
from events.sequencer import delay_seconds, sequence_events
from tests.conftest import Account, make_domain
from tests.core.lib.worker.outages import open_connection
from tests.emails.builders import accept
from tests.events.test_sequencer import EVENT
from tests.events.version_before import read_before, record_before, sequence_before

pytestmark = pytest.mark.django_db

FAILURE = """
INSERT INTO emails_event (id, workspace_id, kind, payload, created_at)
SELECT gen_random_uuid(), workspace_id, 'domain.failed', '{}', now() FROM emails_email RETURNING number
"""


@pytest.fixture
def email(alice: Account) -> Email:
    take_over_feed()
    make_domain(alice.workspace, "alice.example")
    accept(alice.workspace)
    return Email.objects.get()


def record_failure(account: Account) -> str:
    """Record an event of the workspace; return its id."""
    record_events([NewEvent(EventKind.DOMAIN_FAILED, workspace_id=account.workspace.id, details={"name": "x.example"})])
    return Event.objects.latest("number").id


def record_deferral(email: Email) -> str:
    record_events([NewEvent(EventKind.DEFERRED, email.id)])
    return Event.objects.latest("number").id


def read_numbers(account: Account) -> list[int]:
    return [one.event.number for one in read_feed(account.workspace.id, after=0, kinds=(), limit=1000).events]


def read_ids(account: Account) -> list[str]:
    return [one.event.id for one in read_feed(account.workspace.id, after=0, kinds=(), limit=1000).events]


class TestRollingUpgrade:
    def test_the_version_before_finds_every_event_until_the_sequencer_of_this_one_runs(self, alice, email):
        """Web servers are replaced before the first worker (docs/upgrades.md)."""
        return_feed()
        recorded = [Event.objects.get().id, record_before(alice.workspace.id)]
        sequence_before()
        take_over_feed()
        assert [id_ for id_, _, _ in read_before(alice.workspace.id)] == recorded == read_ids(alice)
        moved = record_before(alice.workspace.id)
        sequence_events()
        assert read_ids(alice) == [*recorded, moved]


class TestWayBack:
    def test_each_event_is_in_the_feed_once_and_the_version_before_finds_those_that_it_knows(self, alice, email):
        recorded = [Event.objects.get().id, record_failure(alice)]
        sequence_events()
        assert return_feed()
        recorded += [record_deferral(email), record_before(alice.workspace.id)]
        sequence_events()
        assert read_ids(alice) == recorded[:2]
        sequence_before()
        # It does not find the event on no timeline that this version has recorded.
        assert [id_ for id_, _, _ in read_before(alice.workspace.id)] == [recorded[0], *recorded[2:]]
        assert take_over_feed()
        recorded += [record_failure(alice), record_deferral(email), record_before(alice.workspace.id)]
        sequence_events()
        sequence_before()
        sequence_events()
        assert read_ids(alice) == recorded

    def test_events_that_processes_of_this_version_record_meanwhile_follow_after_the_upgrade(self, alice, email):
        sequence_events()
        return_feed()
        skipped = [record_failure(alice), record_failure(alice)]
        record_deferral(email)
        sequence_before()
        assert not {*skipped} & {*read_ids(alice)}
        take_over_feed()
        last = record_failure(alice)
        for _ in range(2):
            sequence_events()
        assert read_ids(alice)[-3:] == [*skipped, last]
        assert len(read_ids(alice)) == Event.objects.count()

    def test_the_version_before_gets_the_whole_progress_and_only_it_changes(self, alice, email):
        sequence_events()
        FeedProgress.objects.filter(source="log").update(gaps="{[1,3)}", new_gaps="{[5,6)}", writers=["3/7"])
        (expected,) = FeedProgress.objects.filter(source="log").values("last", "gaps", "new_gaps", "writers")
        return_feed()
        assert FeedProgress.objects.filter(source="emails").values(*expected).get() == expected
        assert FeedProgress.objects.get(source="workspaces").last == 0
        for source in ("log", "former"):
            stopped = FeedProgress.objects.filter(source=source).values(*expected).get()
            assert stopped == {"last": former_sequencer.END, "gaps": "{}", "new_gaps": "{}", "writers": []}

    def test_repeating_either_changes_nothing(self, alice, email):
        sequence_events()
        for act in (return_feed, take_over_feed):
            assert act()
            before = list(FeedProgress.objects.order_by("source").values())
            assert not act()
            assert list(FeedProgress.objects.order_by("source").values()) == before
        assert has_feed()

    def test_an_event_that_waits_for_the_version_before_counts_as_waiting(self, alice, email):
        sequence_events()
        assert delay_seconds() == 0
        return_feed()
        record_deferral(email)
        Event.objects.update(created_at=Event.objects.latest("number").created_at - timedelta(minutes=5))
        assert delay_seconds() > 290
        sequence_before()
        assert delay_seconds() == 0


@pytest.mark.django_db(transaction=True)
def test_events_of_transactions_that_run_during_the_way_back_are_in_the_feed_once(alice: Account, email: Email):
    with open_connection() as other:
        ((of_email,), (of_workspace,)) = (other.execute(statement).fetchone() for statement in (EVENT, FAILURE))
        record_deferral(email)
        sequence_events()
        return_feed()
        other.commit()
    sequence_before()
    assert read_numbers(alice)[-1] == of_email
    take_over_feed()
    for _ in range(3):
        sequence_events()
    assert read_numbers(alice)[-1] == of_workspace
    assert sorted(read_numbers(alice)) == sorted(Event.objects.values_list("number", flat=True))
