"""Recipients, messages and readings that are processed together: the number of statements, and one that breaks them."""

import asyncio
import logging
import time
from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.lib.ids import to_uuid
from core.lib.worker.leases import Lease
from emails.models import Recipient
from emails.sending.reply_address import reply_address
from events.models import Event
from interfaces.inbound.routed import process_together, store
from receiving.answers.matching import MatchedBy
from receiving.arrival import replies
from receiving.arrival.routing import AskedRecipient, decide_recipients
from receiving.arrival.storing import Arrival, Delivery, store_messages
from receiving.models import Message, ReceivedContent, ReceivedEmail, ReceivingUsage, SenderBlock
from receiving.reading.dns_lookups import DnsUnavailable, MessageLookups, SharedLookups
from receiving.received_work import ReceivedQueueWork
from tests.conftest import make_account, make_domain
from tests.core.lib.nameserver import SILENCE, NameServer
from tests.emails.builders import send
from tests.receiving.builders import PLAIN, arrive, make_route, process_received, receive_for, with_field

pytestmark = pytest.mark.django_db

# Those around a transaction are not counted: a test is one already.
FRAMES = ("SAVEPOINT", "RELEASE SAVEPOINT", "ROLLBACK TO SAVEPOINT")


def count_statements(act) -> tuple[object, int]:
    """Return the result of an act and the number of its statements; several in one query are one."""
    with CaptureQueriesContext(connection) as captured:
        result = act()
    return result, sum(not query["sql"].startswith(FRAMES) for query in captured.captured_queries)


def deliveries(count: int, *to: str, first: int = 0, **envelope) -> list[Delivery]:
    """Return different messages to the same recipients."""
    addresses = to or ("support@alice.example",)
    found = decide_recipients([AskedRecipient(address, "ada@example.com") for address in addresses])
    recipients = [decision.recipient for decision in found if decision.recipient]
    values = {"envelope_from": "ada@example.com", "remote_ip": "192.0.2.7", "helo": "mx.example.com", **envelope}
    numbers = range(first, first + count)
    return [Delivery(Arrival(with_field(f"X-Number: {number}"), **values), recipients) for number in numbers]


@pytest.fixture
def bob(receiving, route):
    """Another workspace that receives."""
    bob = make_account("bob")
    receive_for(make_domain(bob.workspace, "bob.example"))
    make_route(bob.workspace, domain="bob.example")
    return bob


def test_recipients_are_found_with_one_statement(key, alice, bob):
    send(key)
    sent = Recipient.objects.get()
    answer = reply_address(to_uuid(sent.id), domain="alice.example")
    SenderBlock.objects.create(workspace=bob.workspace, sender="spam.example")
    asked = [
        AskedRecipient("support@alice.example", "ada@example.com", "192.0.2.7"),
        AskedRecipient("nobody@nowhere.example", "ada@example.com"),
        AskedRecipient("x@BOB.example", "eve@spam.example"),
        AskedRecipient("x@bob.example", "ada@example.com"),
        AskedRecipient(answer, ""),
        AskedRecipient("abcdefghijkl@in.demo.example", ""),
        AskedRecipient("a\0b@alice.example", ""),
    ]
    found, statements = count_statements(lambda: decide_recipients(asked))
    accepted, unknown, blocked = replies.ACCEPTED, replies.NO_SUCH_ADDRESS, replies.BLOCKED
    assert [one.reply for one in found] == [accepted, unknown, blocked, accepted, accepted, unknown, unknown]
    owners = [one.recipient and one.recipient.workspace.id for one in found]
    assert owners == [alice.workspace.id, None, bob.workspace.id, bob.workspace.id, alice.workspace.id, None, None]
    assert [one.recipient.reply_to for one in found if one.recipient] == [None, None, None, sent.id]
    assert statements == 1


@pytest.mark.parametrize("count", [1, 30])
def test_messages_are_stored_with_the_same_number_of_statements(bob, alice, count):
    stored, statements = count_statements(lambda: store_messages(deliveries_of_two(count)))
    # RCPT; the lock with the search for repetitions; the use of both workspaces; the bytes; the rows.
    assert statements == 5
    assert len(set(stored)) == count
    assert (Message.objects.count(), ReceivedContent.objects.count(), ReceivedEmail.objects.count()) == (
        count,
        count,
        2 * count,
    )
    sizes = sum(Message.objects.values_list("size", flat=True))
    assert [(use.messages, use.stored_bytes) for use in ReceivingUsage.objects.all()] == [(count, sizes)] * 2
    assert {bytes(row.data)[:12] for row in ReceivedContent.objects.all()} == {
        with_field(f"X-Number: {number}")[:12] for number in range(count)
    }


def deliveries_of_two(count: int) -> list[Delivery]:
    return deliveries(count, "support@alice.example", "x@bob.example")


def test_a_message_that_is_delivered_twice_in_one_group_has_one_row(route):
    (first,), (second,) = deliveries(1), deliveries(1)
    ids = store_messages([first, second, *deliveries(1, first=5)])
    assert ids[0] == ids[1] != ids[2]
    assert store_messages([second]) == ids[:1]
    assert (Message.objects.count(), ReceivedEmail.objects.count(), ReceivingUsage.objects.get().messages) == (2, 2, 2)


def test_a_recipient_that_is_named_twice_has_one_row(route):
    store_messages(deliveries(1, "support@alice.example", "SUPPORT@alice.example"))
    assert (ReceivedEmail.objects.count(), ReceivingUsage.objects.get().messages) == (1, 1)


def test_a_message_above_a_limit_does_not_stop_the_others_of_its_group(bob, settings):
    settings.RECEIVING_DAILY_LIMIT = 12
    group = deliveries(11) + deliveries(3, "x@bob.example", first=20) + deliveries(2, first=30)
    answers = store(group)
    assert [answer[:3] for answer in answers] == ["250"] * 15 + ["452"]
    assert answers[-1] == replies.DAY_IS_FULL
    assert ReceivedEmail.objects.count() == 15


def test_a_message_that_the_database_refuses_does_not_stop_the_others_of_its_group(route, caplog):
    group = [*deliveries(2), *deliveries(1, first=2, tls="\0"), *deliveries(2, first=3)]
    with caplog.at_level(logging.CRITICAL):
        answers = process_together(store, group, failed="451")
    assert [answer[:3] for answer in answers] == ["250", "250", "451", "250", "250"]
    assert ReceivedEmail.objects.count() == Message.objects.count() == 4


def test_a_loop_in_a_group_is_refused_alone(route):
    looping = Delivery(
        replace(deliveries(1)[0].arrival, source=b"Received: x\r\n" * 31 + PLAIN), deliveries(1)[0].recipients
    )
    answers = store([*deliveries(1), looping, *deliveries(1, first=2)])
    assert [answer[:3] for answer in answers] == ["250", "554", "250"]


def read_claimed(work: ReceivedQueueWork) -> list:
    """Claim and read all due messages; return the results, which are not recorded."""
    jobs = work.claim(16).jobs

    async def perform():
        return [await work.perform(job, Lease(0)) for job in jobs]

    return asyncio.run(perform())


@pytest.mark.parametrize("count", [1, 10])
def test_messages_are_claimed_and_recorded_with_the_same_number_of_statements(bob, webhook, count):
    store_messages(deliveries_of_two(count))
    work = ReceivedQueueWork()
    results, claiming = count_statements(lambda: read_claimed(work))
    assert len(results) == count
    # An email to forward; small and large messages, each in up to two turns; the jobs; their sources.
    assert claiming <= 7
    _, recording = count_statements(lambda: work.record(results))
    # The lease; the readings; the emails; their moves; the counters; the events.
    assert recording == 6
    assert ReceivedEmail.objects.filter(status="processed").count() == 2 * count
    assert Event.objects.filter(kind="received").count() == 2 * count
    assert set(Event.objects.values_list("workspace_id", flat=True)) == set(
        ReceivedEmail.objects.values_list("workspace_id", flat=True)
    )


def test_a_reading_that_the_database_refuses_does_not_stop_the_others_of_its_batch(bob, caplog):
    store_messages(deliveries_of_two(3))
    work = ReceivedQueueWork()
    first, second, third = read_claimed(work)
    poison = replace(second, reading=replace(second.reading, text="a\0b"))
    surrogate = replace(third, reading=replace(third.reading, subject="\ud800"))
    with caplog.at_level(logging.CRITICAL):
        work.record([first, poison, surrogate])
    statuses = dict(ReceivedEmail.objects.values_list("message__id", "status"))
    assert sorted(statuses.values()) == ["processed", "unreadable", "unreadable"]
    assert Message.objects.filter(read_at=None).count() == 0
    assert Event.objects.filter(kind="received").count() == 6


def test_answers_of_two_workspaces_in_one_batch_match_their_own_emails_only(key, alice, bob):
    send(key)
    sent = Recipient.objects.get()
    answers = f"In-Reply-To: <{sent.id}@alice.example>"
    for to in ("support@alice.example", "x@bob.example"):
        for number in range(2):
            arrive(with_field(f"X-Number: {to} {number}", with_field(answers)), to=to)
    process_received()
    found = sorted(ReceivedEmail.objects.values_list("workspace_id", "reply_recipient_id", "reply_matched_by"))
    ours = [(alice.workspace.id, sent.id, MatchedBy.MESSAGE_ID)] * 2
    assert found == sorted([*ours, *[(bob.workspace.id, None, "")] * 2])
    assert Event.objects.filter(kind="replied").count() == 2


def test_records_are_looked_up_once_for_all_messages():
    zone = {"a.example": {"TXT": ['"x"']}, "b.example": {"MX": ["10 mx.b.example."]}}
    with NameServer(zone) as server:

        async def look_up():
            loop = asyncio.get_running_loop()
            shared = SharedLookups(loop, [server.address])

            def ask():
                lookups = MessageLookups(shared)
                return [lookups.look_up(name, "TXT") for name in ("a.example", "A.example.", "b.example")]

            together = await asyncio.gather(*(loop.run_in_executor(None, ask) for _ in range(4)))
            return [*together, await loop.run_in_executor(None, ask)]

        assert asyncio.run(look_up()) == [[("x",), ("x",), ()]] * 5
        assert server.count("a.example", "TXT") == 1
        # Nothing says for how long it will not exist.
        assert server.count("b.example", "TXT") >= 2


def test_a_message_without_time_does_not_end_the_lookup_of_another_and_the_last_one_does():
    with NameServer({"slow.example": SILENCE}) as server:

        async def look_up():
            loop = asyncio.get_running_loop()
            shared = SharedLookups(loop, [server.address])

            def ask(seconds: float) -> float:
                began = time.monotonic()
                with pytest.raises(DnsUnavailable):
                    MessageLookups(shared, seconds=seconds).look_up("slow.example", "TXT")
                return time.monotonic() - began

            durations = await asyncio.gather(*(loop.run_in_executor(None, ask, seconds) for seconds in (0.1, 1)))
            await asyncio.sleep(0.1)
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            return durations, tasks

        (short, long), tasks = asyncio.run(look_up())
    assert short < 1 <= long
    assert not tasks
    assert server.count("slow.example", "TXT") == 1
