"""The sequencer: no reader misses an event that commits late, and none is shown twice."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import transaction

from emails.models import Recipient
from events import sequencer
from events.feed import read_feed
from events.kinds import EventKind
from events.models import Event, FeedEntry, FeedProgress
from events.recording import NewEvent, record_events
from events.sequencer import sequence_events
from tests.conftest import Account, make_domain
from tests.core.lib.worker.outages import lose_connection, open_connection
from tests.emails.builders import accept
from tests.threads import own_connection

pytestmark = pytest.mark.django_db(transaction=True)

EVENT = """
INSERT INTO emails_event (id, email_id, recipient_id, kind, payload, created_at)
SELECT gen_random_uuid(), email_id, id, 'sent', '{}', now() FROM emails_recipient RETURNING number
"""


@pytest.fixture
def email(alice: Account) -> Recipient:
    make_domain(alice.workspace, "alice.example")
    accept(alice.workspace)
    sequence_events()
    return Recipient.objects.get()


def feed_numbers(workspace_id: str) -> list[int]:
    return [one.event.number for one in read_feed(workspace_id, after=0, kinds=(), limit=10_000).events]


def gaps() -> str:
    progress = FeedProgress.objects.get(source="log")
    return progress.gaps + progress.new_gaps


def test_an_event_that_commits_late_follows_those_that_committed_before(alice, email):
    with open_connection() as other:
        late = other.execute(EVENT).fetchone()[0]
        record_events([NewEvent(EventKind.DEFERRED, email.email_id)])
        for _ in range(3):
            sequence_events()
        before = feed_numbers(alice.workspace.id)
        assert late not in before
        assert max(before) > late
        other.commit()
    sequence_events()
    assert feed_numbers(alice.workspace.id) == [*before, late]


def test_a_number_that_was_rolled_back_is_given_up(email):
    with open_connection() as other:
        other.execute(EVENT)
        record_events([NewEvent(EventKind.DEFERRED, email.email_id)])
        for _ in range(3):
            sequence_events()
        assert gaps() != "{}{}"
        other.rollback()
    for _ in range(3):
        sequence_events()
    assert gaps() == "{}{}"


def test_a_gap_is_kept_while_any_of_its_possible_writers_runs(alice, email):
    with open_connection() as first, open_connection() as second:
        first.execute(EVENT)
        second_number = second.execute(EVENT).fetchone()[0]
        record_events([NewEvent(EventKind.DEFERRED, email.email_id)])
        sequence_events()
        first.rollback()
        for _ in range(3):
            sequence_events()
        second.commit()
    sequence_events()
    assert feed_numbers(alice.workspace.id)[-1] == second_number


def test_without_new_events_the_sequencer_asks_one_question(email, django_assert_num_queries):
    for _ in range(3):
        sequence_events()
    with django_assert_num_queries(1):
        sequence_events()


def test_two_sequencers_do_not_wait_for_each_other(alice, email):
    record_events([NewEvent(EventKind.DEFERRED, email.email_id)])
    with open_connection() as other:
        other.execute("SELECT FROM events_feedhead FOR UPDATE")
        sequence_events()
        assert len(feed_numbers(alice.workspace.id)) == 1
        other.rollback()
    sequence_events()
    assert len(feed_numbers(alice.workspace.id)) == 2


def test_concurrent_writers_and_sequencers_show_every_event_once_and_those_of_a_recipient_in_order(alice, email):
    accept(alice.workspace, count=5)
    seen: list[int] = []
    have_written, is_sequenced = threading.Event(), threading.Event()
    with ThreadPoolExecutor(8) as pool:
        writers = [pool.submit(own_connection(write), random.Random(seed)) for seed in range(4)]
        sequencers = [pool.submit(own_connection(repeat), sequence_events, have_written) for _ in range(2)]
        reader = pool.submit(own_connection(follow), alice.workspace.id, seen, is_sequenced)
        for future in writers:
            future.result()
        have_written.set()
        for future in sequencers:
            future.result()
        for _ in range(3):
            sequence_events()
        is_sequenced.set()
        reader.result()
    numbers = {event.number: event.recipient_id for event in Event.objects.all()}
    assert sorted(seen) == sorted(numbers)
    for recipient_id in {*numbers.values()}:
        of_recipient = [number for number in seen if numbers[number] == recipient_id]
        assert recipient_id is None or of_recipient == sorted(of_recipient)


def repeat(function: Callable[[], None], is_done: threading.Event) -> None:
    while not is_done.is_set():
        function()


def write(choices: random.Random) -> None:
    """Add events of random recipients, locked as workers lock them; roll some back."""
    recipients = list(Recipient.objects.order_by("id"))
    for _ in range(40):
        chosen = sorted(choices.sample(recipients, 3), key=lambda one: one.id)
        with transaction.atomic():
            # A transaction id long before the events, as a claim does.
            Recipient.objects.filter(id=chosen[0].id).update(attempts=1)
            for recipient in chosen:
                Recipient.objects.filter(id=recipient.id).update(attempts=1)
                record_events([NewEvent(EventKind.DEFERRED, recipient.email_id, recipient.id, recipient.address)])
            record_events([NewEvent(EventKind.SUPPRESSED, workspace_id=recipient.email.workspace_id)])
            transaction.set_rollback(choices.random() < 0.2)


def follow(workspace_id: str, seen: list[int], is_done: threading.Event) -> None:
    """Read the feed from its beginning, as a program does, until the writers are done and nothing is new."""
    position = 0
    while True:
        was_done = is_done.is_set()
        page = read_feed(workspace_id, after=position, kinds=(), limit=7)
        seen.extend(positioned.event.number for positioned in page.events)
        position = page.position
        if was_done and not page.has_more:
            return


def test_a_lost_connection_is_one_line_and_the_next_batch_opens_another(alice, email, monkeypatch, caplog):
    monkeypatch.setattr(sequencer, "is_stopping", iter([False, False, True]).__next__)
    record_events([NewEvent(EventKind.DEFERRED, email.email_id)])
    lose_connection()
    sequencer._run()
    assert [(record.name, record.exc_info) for record in caplog.records] == [("postrider.database", None)]
    assert len(feed_numbers(alice.workspace.id)) == 2


def test_entries_have_increasing_positions_without_holes(alice, email):
    for _ in range(3):
        accept(alice.workspace)
        record_events([NewEvent(EventKind.DOMAIN_FAILED, workspace_id=alice.workspace.id)])
        sequence_events()
    positions = list(FeedEntry.objects.order_by("position").values_list("position", flat=True))
    assert positions == list(range(positions[0], positions[0] + 7))
