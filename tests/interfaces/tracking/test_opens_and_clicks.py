"""Effects of an open or a click on the recipient, the email, the timeline and the counters."""

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from django.db import Error, connection, connections, transaction

from core.counters import counters
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.lib.ids import new_id
from core.workspaces.models import Workspace
from emails.feedback.opens_and_clicks import EVENTS_PER_LINK, Hit, record_hits
from emails.models import Email, HitCount, QueueEntry, Recipient
from emails.sending.outcomes import SendResult, record_results
from events.models import Event
from tests.conftest import Account, Api, mail
from tests.emails.builders import claim_entries
from tests.interfaces.compat.test_concurrent_changes import blocked_connections
from tests.interfaces.tracking.conftest import TARGET, Reader, make_reader
from tests.rows import each
from tests.stack.stack import wait_for

pytestmark = pytest.mark.django_db

AFTER_AN_OPEN = {
    "queued": "opened", "sent": "opened", "delivered": "opened", "opened": "opened", "clicked": "clicked",
    "scheduled": "scheduled", "bounced": "bounced", "failed": "failed", "cancelled": "cancelled",
}  # fmt: skip
AFTER_A_CLICK = {**AFTER_AN_OPEN, **dict.fromkeys(("queued", "sent", "delivered", "opened", "clicked"), "clicked")}
PAYLOAD = {"to": "ada@example.com", "machine": False, "first": True}
UNDELIVERED = ("bounced", "failed", "cancelled")


@each(("state", "after"), AFTER_AN_OPEN.items())
def test_an_open_changes_the_state_as_the_transitions_allow(reader_in, state, after):
    reader = reader_in(state)
    reader.loads_the_pixel()
    assert (reader.recipient.state, reader.email.status) == (after, after)
    assert reader.events() == [("opened", {**PAYLOAD, "emailId": reader.email.id})]


@each(("state", "after"), AFTER_A_CLICK.items())
def test_a_click_changes_the_state_as_the_transitions_allow(reader_in, state, after):
    reader = reader_in(state)
    reader.clicks()
    assert (reader.recipient.state, reader.email.status) == (after, after)
    assert reader.events() == [("clicked", {**PAYLOAD, "emailId": reader.email.id, "url": TARGET})]


@each("state", ["queued", "sent"])
def test_an_open_without_a_known_delivery_implies_one(reader_in, state):
    reader = reader_in(state)
    reader.loads_the_pixel()
    recipient = reader.recipient
    assert recipient.delivered_at == recipient.opened_at
    assert recipient.clicked_at is None
    assert (reader.email.delivered_at, reader.email.opened_at) == (recipient.delivered_at, recipient.opened_at)


def test_a_click_counts_as_opened_and_delivered_too(reader_in):
    reader = reader_in("sent")
    reader.clicks()
    email = reader.email
    assert email.delivered_at == email.opened_at == email.clicked_at
    assert email.clicked_at is not None
    for name in ("delivered", "opened", "clicked"):
        assert counters.total(reader.workspace.id, keys=[f"reached.{name}"]) == 1, name


def test_the_first_times_stay_and_are_counted_once(reader: Reader):
    delivered_at = reader.recipient.delivered_at
    reader.loads_the_pixel()
    opened_at = reader.recipient.opened_at
    reader.clicks()
    reader.loads_the_pixel()
    reader.clicks("https://shop.example/other")
    recipient = reader.recipient
    assert (recipient.delivered_at, recipient.opened_at) == (delivered_at, opened_at)
    assert recipient.clicked_at is not None
    assert reader.kinds() == ["opened", "clicked", "opened", "clicked"]
    assert counters.total(reader.workspace.id, keys=["reached.opened"]) == 1
    assert counters.total(reader.workspace.id, keys=["status.opened"]) == 0
    assert counters.total(reader.workspace.id, keys=["status.clicked"]) == 1


@each("state", UNDELIVERED)
def test_a_hit_of_an_undelivered_email_is_only_an_event(reader_in, state):
    reader = reader_in(state)
    before = Recipient.objects.values().get(), Email.objects.values().get()
    reader.loads_the_pixel()
    reader.clicks()
    assert (Recipient.objects.values().get(), Email.objects.values().get()) == before
    assert reader.kinds() == ["opened", "clicked"]


def test_the_status_of_an_email_follows_its_best_recipient(alice: Account):
    reader = make_reader(alice.workspace)
    other = Recipient.objects.create(
        email_id=reader.recipient.email_id, kind="cc", position=1, address="bob@example.com", state="bounced"
    )
    reader.loads_the_pixel()
    assert reader.email.status == "opened"
    other.refresh_from_db()
    assert other.state == "bounced"


def test_twenty_hits_of_a_link_are_events_of_each_kind_and_all_are_counted(reader: Reader):
    for _ in range(5):
        record_hits([Hit(reader.recipient.id, url=TARGET)] * 5)
    assert len(reader.events()) == EVENTS_PER_LINK
    record_hits([Hit(reader.recipient.id, url=TARGET + "x")] * 25 + [Hit(reader.recipient.id)] * 25)
    assert len(reader.events()) == 3 * EVENTS_PER_LINK
    assert sorted(HitCount.objects.values_list("hits", flat=True)) == [25, 25, 25]


def test_a_batch_is_recorded_in_order_and_in_few_statements(alice, django_assert_num_queries):
    readers = [make_reader(alice.workspace) for _ in range(10)]
    hits = [Hit(reader.recipient.id, url=url) for url in (None, TARGET) for reader in readers]
    with django_assert_num_queries(9):
        record_hits(hits)
    assert Recipient.objects.filter(state="clicked").count() == Email.objects.filter(status="clicked").count() == 10
    assert list(Event.objects.values_list("kind", flat=True)) == ["opened"] * 10 + ["clicked"] * 10


def test_the_hits_of_a_deleted_email_leave_no_trace(reader: Reader):
    path = reader.click_path()
    reader.loads_the_pixel()
    Event.objects.all().delete()
    with connection.cursor() as cursor:
        # As in retention, without the ORM; the hit counts are deleted by cascade.
        cursor.execute("DELETE FROM emails_recipient")
        cursor.execute("DELETE FROM emails_email")
    record_hits([Hit(reader.recipient.id), Hit(reader.recipient.id, url=TARGET), Hit(new_id())])
    assert not Event.objects.exists()
    assert not HitCount.objects.exists()
    assert path.startswith("/t/c/")


def test_a_click_while_the_message_is_being_sent_survives_the_outcome(api: Api, alice: Account):
    api.post("/emails/send", mail())
    (claim,) = claim_entries(10)
    reader = Reader(Recipient.objects.get(), alice.workspace)
    reader.clicks()
    assert [payload["machine"] for kind, payload in reader.events() if kind == "clicked"] == [True]
    record_results([SendResult(claim, DeliveryOutcome(DeliveryStatus.DELIVERED, Reply(250, "OK")))])
    reader.recipient.refresh_from_db()
    assert (reader.recipient.state, reader.email.status) == ("clicked", "clicked")
    assert reader.recipient.sent_at is not None
    assert not QueueEntry.objects.exists()
    assert counters.total(alice.workspace.id, keys=["reached.delivered"]) == 1


@pytest.mark.parametrize(("seconds", "is_bot"), [(0, True), (1.5, True), (3, False)])
def test_a_hit_right_after_sending_is_marked_as_a_bot(reader_in, seconds, is_bot):
    reader = reader_in("delivered", sent_at=datetime.now(UTC) - timedelta(seconds=seconds))
    reader.clicks()
    assert reader.events()[0][1]["machine"] is is_bot
    assert reader.recipient.state == "clicked"


def test_a_buffered_hit_is_judged_by_the_time_it_was_received_and_one_before_a_retry_is_not_marked(reader_in):
    waiting = reader_in("queued")
    waiting.loads_the_pixel()
    assert waiting.events()[0][1]["machine"] is False
    reader = reader_in("delivered", sent_at=datetime.now(UTC) - timedelta(seconds=10))
    hit = Hit(reader.recipient.id)
    record_hits([Hit(reader.recipient.id, received_at=hit.received_at - 9)])
    assert reader.events()[0][1]["machine"] is True


def queued_readers(workspace: Workspace, count: int) -> list[Reader]:
    now = datetime.now(UTC)
    readers = [make_reader(workspace, state="queued") for _ in range(count)]
    rows = {"workspace_id": workspace.id, "domain": "example.com", "stage": 1, "due_at": now, "since": now}
    for reader in readers:
        QueueEntry.objects.create(recipient_id=reader.recipient.id, **rows)
    return readers


@contextmanager
def run_concurrently(*actions: Callable[[], None]) -> Iterator[None]:
    """Run actions on separate connections while the block runs; fail on any database error."""
    errors: list[Error] = []

    def run(action: Callable[[], None]) -> None:
        try:
            action()
        except Error as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=[action]) for action in actions]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join()
    assert not errors


@pytest.mark.django_db(transaction=True)
def test_hits_lock_the_queue_entry_before_the_recipient(alice: Account):
    """Recording outcomes locks these rows first; another order could deadlock."""
    readers = queued_readers(alice.workspace, 3)
    is_locked = threading.Event()

    def action() -> None:
        is_locked.wait()
        record_hits([Hit(reader.recipient.id) for reader in readers])

    with run_concurrently(action), transaction.atomic():
        assert len(QueueEntry.objects.select_for_update()) == 3
        is_locked.set()
        wait_for(lambda: blocked_connections() == 1, seconds=60, what="the hits wait for a lock")
        assert len(Recipient.objects.select_for_update(nowait=True)) == 3
    assert Event.objects.filter(kind="opened").count() == 3


@pytest.mark.django_db(transaction=True)
def test_hits_and_outcomes_at_once_lose_nothing(alice: Account):
    readers = queued_readers(alice.workspace, 30)
    ids = [reader.recipient.id for reader in readers]
    claims = claim_entries(30)
    delivered = DeliveryOutcome(DeliveryStatus.DELIVERED, Reply(250, "OK"))
    outcomes = functools.partial(record_results, [SendResult(claim, delivered) for claim in reversed(claims)])
    clicks = functools.partial(record_hits, [Hit(id_, url=TARGET) for id_ in ids])
    opens = functools.partial(record_hits, [Hit(id_) for id_ in reversed(ids)])
    with run_concurrently(outcomes, clicks, opens, clicks, opens):
        pass
    assert set(Email.objects.values_list("status", flat=True)) == {"clicked"}
    assert Event.objects.filter(kind="clicked").count() == 60
    assert set(HitCount.objects.values_list("hits", flat=True)) == {2}
    assert counters.total(alice.workspace.id, keys=["reached.opened"]) == 30
