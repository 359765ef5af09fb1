"""A receiver that asks for less email gets less (docs/decisions/0278): real servers, with the clock of the pauses."""

import asyncio
import heapq
from contextlib import AsyncExitStack

import pytest

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.delivery.bounces.slow_signals import SlowSignal
from core.delivery.transports.circuit_breaker import NEVER
from core.delivery.transports.destinations import SPREAD_SECONDS, Destination, DestinationBusy, DestinationLimits
from core.delivery.transports.direct import DIRECT_LIMITS
from core.delivery.transports.relay import INBOX_LIMITS
from core.delivery.transports.smtp.errors import LISTING_WAIT
from tests.core.delivery.relaying import MESSAGE, SHORT, FakeClock, awaited, relay
from tests.core.delivery.scripted import ScriptedServer, StubLease, then_disconnect
from tests.core.delivery.transports.test_direct import FIRST, SECOND, mail, transport_for, zones
from tests.rows import each

LEASE = StubLease()
RATE, REPUTATION, LISTED = SlowSignal
SLOW_DOWN = b"421 4.7.28 Gmail has detected an unusual rate of mail originating from your IP address\r\n"
S3150 = (
    b"550 5.7.1 Messages from [127.0.0.1] weren't sent since part of their network is on our block list (S3150).\r\n"
)
# Jobs in flight of one workspace in a worker with 50 sessions.
BATCH = 40
# DELIVERY_RETRY_SECONDS.
RETRIES = (60, 180, 300, 600, 1200, 2400)


def refusal(reason):
    return DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(421, "4.7.0 Slow down"), reason)


async def free_slots(destination):
    """Return how many messages the destination takes at once now."""
    async with AsyncExitStack() as stack:
        for taken in range(100):
            try:
                await stack.enter_async_context(destination.slot())
            except DestinationBusy:
                return taken
    return 100


class Queue:
    """Messages that wait for a transport, as the queue entries do: parked ones use no attempt.

    attempts: the times of attempts and their outcomes, by message.
    """

    def __init__(self, transport, clock, *, count):
        self.transport, self.clock = transport, clock
        self.due = [(clock.now, number) for number in range(count)]
        self.attempts = {number: [] for number in range(count)}
        self.parked = dict.fromkeys(range(count), 0)
        self.outcomes = []

    async def run_until(self, end):
        """Deliver what is due, in batches, until the clock has reached a time."""
        while self.due and self.due[0][0] <= end:
            self.clock.now = max(self.clock.now, self.due[0][0])
            batch = []
            while self.due and self.due[0][0] <= self.clock.now and len(batch) < BATCH:
                batch.append(heapq.heappop(self.due)[1])
            outcomes = await asyncio.gather(*(self.transport.deliver(mail(), lease=LEASE) for _ in batch))
            for number, outcome in zip(batch, outcomes, strict=True):
                self.record(number, outcome)
        self.clock.now = max(self.clock.now, end)

    def record(self, number, outcome):
        if outcome.status is DeliveryStatus.PARKED:
            wait = outcome.retry_after.total_seconds() or min(2 ** (self.parked[number] + 1), 60)
            self.parked[number] = 0 if outcome.retry_after else self.parked[number] + 1
            heapq.heappush(self.due, (self.clock.now + wait, number))
            return
        self.attempts[number].append((self.clock.now, outcome))
        if outcome.status is DeliveryStatus.DEFERRED:
            wait = max(RETRIES[min(len(self.attempts[number]), 6) - 1], outcome.retry_after.total_seconds())
            heapq.heappush(self.due, (self.clock.now + wait, number))

    def made(self, *, since=0.0):
        return [outcome for made in self.attempts.values() for at, outcome in made if at >= since]

    def delivered(self):
        return sum(outcome.status is DeliveryStatus.DELIVERED for outcome in self.made())


def reject_until_told(stage, reply):
    """Return the script of a receiver that answers a stage with a reply."""
    return {stage: then_disconnect(reply) if reply.startswith(b"421") else reply}


async def slow_down(server, clock, transport, *, count):
    """Send to a receiver that refuses everything for seven minutes, then accepts."""
    began, script = clock.now, server.script
    queue = Queue(transport, clock, count=count)
    server.script = {}
    # Connections at their limit, as after minutes of successful deliveries.
    for _ in range(3):
        await asyncio.gather(*(transport.deliver(mail(), lease=LEASE) for _ in range(BATCH)))
    transport.close()
    server.script = script
    minutes = []
    for minute in range(1, 8):
        before = len(queue.made())
        await queue.run_until(began + 60 * minute)
        minutes.append(len(queue.made()) - before)
    refused = {number for number, made in queue.attempts.items() if made}
    server.script = {}
    # Refused messages have their own schedule; the others are delivered within two minutes.
    await queue.run_until(clock.now + 120)
    return queue, minutes, refused


class TestAReceiverThatAsksForLess:
    @pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.long)])
    @each("stage", ["banner", "ehlo", "mail", "rcpt", "data", "dot"])
    @awaited
    async def test_gets_four_attempts_a_minute_and_everything_once_it_accepts(self, stage, count):
        clock = FakeClock()
        async with ScriptedServer(reject_until_told(stage, SLOW_DOWN)) as server:
            options = {"clock": clock, "limits": DIRECT_LIMITS, "timeouts": SHORT}
            async with transport_for(zones(FIRST), server.port, **options) as transport:
                queue, minutes, refused = await slow_down(server, clock, transport, count=count)
                waiting = [number for number in queue.attempts if number not in refused]
                # Those that were in flight, then the probes after 30 s and each minute.
                assert minutes[0] <= 12
                assert max(minutes[3:]) <= 4
                assert len(refused) <= 20
                assert [len(queue.attempts[number]) for number in waiting] == [1] * len(waiting)
                assert all(queue.attempts[number][0][1].status is DeliveryStatus.DELIVERED for number in waiting)

    @awaited
    async def test_does_not_slow_another_receiver(self):
        async with ScriptedServer({"dot": SLOW_DOWN}) as slow, ScriptedServer(host=SECOND, port=slow.port) as good:
            records = {"slow.example": {"A": [FIRST]}, "good.example": {"A": [SECOND]}}
            async with transport_for(records, slow.port, clock=FakeClock()) as transport:
                for _ in range(10):
                    await transport.deliver(mail("slow.example"), lease=LEASE)
                    outcome = await transport.deliver(mail("good.example"), lease=LEASE)
                    assert outcome.status is DeliveryStatus.DELIVERED
                assert (len(slow.messages), len(good.messages)) == (3, 10)

    @awaited
    async def test_is_left_alone_for_half_an_hour_if_it_names_a_block_list(self):
        clock = FakeClock()
        async with (
            ScriptedServer({"mail": S3150}) as server,
            transport_for(zones(FIRST), server.port, clock=clock, limits=DIRECT_LIMITS) as transport,
        ):
            queue = Queue(transport, clock, count=100)
            await queue.run_until(clock.now + 3600)
            # Two that were in flight, one after half an hour.
            assert [one.reason for one in queue.made()] == [FailureReason.BLOCKLISTED] * 3
            assert {one.retry_after for one in queue.made()} == {LISTING_WAIT}
            assert len(server.said("MAIL")) == 3
            server.script = {}
            await queue.run_until(clock.now + 1800 + 2 * SPREAD_SECONDS)
            assert queue.delivered() == 97

    @awaited
    async def test_is_read_on_a_kept_session_too(self):
        async with ScriptedServer({"mail": [b"250 Ok\r\n", then_disconnect(SLOW_DOWN)]}) as server:
            transport = relay(server)
            first, second = [await transport.deliver(MESSAGE, lease=LEASE) for _ in range(2)]
            assert (first.status, second.reason) == (DeliveryStatus.SENT, FailureReason.RATE_LIMITED)
            assert server.connections == 1

    @awaited
    async def test_may_end_a_connection_after_its_messages(self):
        full = b"421 Max message per connection reached, closing transmission channel\r\n"
        async with ScriptedServer({"mail": [b"250 Ok\r\n", then_disconnect(full), b"250 Ok\r\n"]}) as server:
            transport = relay(server, limits=DestinationLimits(max_connections=10, initial_connections=2))
            outcomes = [await transport.deliver(MESSAGE, lease=LEASE) for _ in range(2)]
            assert {one.status for one in outcomes} == {DeliveryStatus.SENT}
            assert await free_slots(transport._destination) == 4

    @awaited
    async def test_gets_no_wider_window_for_a_host_that_accepts_beside_one_that_does_not(self):
        busy = {"banner": then_disconnect(b"421 4.3.2 Too many connections\r\n")}
        async with ScriptedServer(busy) as first, ScriptedServer(host=SECOND, port=first.port):
            limits = DestinationLimits(max_connections=10, initial_connections=8)
            async with transport_for(zones(FIRST, SECOND), first.port, limits=limits) as transport:
                assert (await transport.deliver(mail(), lease=LEASE)).status is DeliveryStatus.DELIVERED
                (destination,) = transport._destinations._by_key.values()
                assert await free_slots(destination) == 4


# A reply after the window has grown to eight: the free slots after one, and how many pause the destination.
EFFECTS = {
    "421 at the dot": ("dot", SLOW_DOWN, 4, 3),
    "421 at the banner": ("banner", b"421 4.3.2 Busy\r\n", 4, 3),
    "451 at RCPT": ("rcpt", b"451 4.7.500 Server busy\r\n", 4, 3),
    "a 550 that is about the rate": ("rcpt", b"550 Ip frequency limited\r\n", 4, 3),
    "reputation": ("mail", b"421 4.7.0 [TSS04] Messages temporarily deferred due to user complaints\r\n", 0, 1),
    "a block list": ("dot", S3150, 0, 1),
    "greylisting": ("rcpt", b"451 4.7.1 Greylisted\r\n", 8, None),
    "a full mailbox": ("rcpt", b"452 4.2.2 Mailbox full\r\n", 8, None),
    "a busy recipient": ("rcpt", b"450 4.2.0 User busy\r\n", 8, None),
    "an unknown user": ("rcpt", b"550 5.1.1 No such user\r\n", 8, None),
    "a recipient that receives too much": (
        "rcpt", b"450 4.2.1 The user you are trying to contact is receiving mail too quickly\r\n", 8, None,
    ),
}  # fmt: skip


@each(("stage", "reply", "slots", "pauses_after"), EFFECTS.values())
@awaited
async def test_a_reply_has_its_effect_on_the_window_and_the_pause(stage, reply, slots, pauses_after):
    script = {stage: then_disconnect(reply) if reply.startswith(b"421") else reply}
    async with ScriptedServer(script) as server:
        limits = DestinationLimits(max_connections=10, initial_connections=8)
        async with transport_for(zones(FIRST), server.port, limits=limits) as transport:
            await transport.deliver(mail(), lease=LEASE)
            (destination,) = transport._destinations._by_key.values()
            assert await free_slots(destination) == slots
            statuses = [(await transport.deliver(mail(), lease=LEASE)).status for _ in range(5)]
            made = 1 + sum(status is not DeliveryStatus.PARKED for status in statuses)
            assert made == (pauses_after or 6)


@each(("stage", "reply", "is_slowed"), [
    ("rcpt", b"450 4.7.28 host mx.example.com[192.0.2.9] said: 421 4.7.28 unusual rate of mail\r\n", False),
    ("dot", b"450 4.7.1 Too many messages for this domain\r\n", False),
    ("dot", b"454 Throttling failure: Maximum sending rate exceeded.\r\n", True),
    ("rcpt", b"451 4.7.1 Service unavailable, try later\r\n", True),
    ("dot", then_disconnect(b"421 4.7.0 Too much mail\r\n"), True),
])  # fmt: skip
@awaited
async def test_a_relay_is_paused_by_its_own_words_only(stage, reply, is_slowed):
    async with ScriptedServer({stage: reply}) as server:
        transport = relay(server, limits=DestinationLimits(max_connections=20))
        statuses = [(await transport.deliver(MESSAGE, lease=LEASE)).status for _ in range(6)]
        assert statuses.count(DeliveryStatus.PARKED) == (3 if is_slowed else 0)


class TestPause:
    def signal(self, destination, signal=RATE, reason=FailureReason.RATE_LIMITED):
        destination.record_signal(signal, refusal(reason))

    @each(("signal", "seconds"), [(RATE, [30, 60, 60, 60]), (REPUTATION, [30, 60, 120, 240]), (LISTED, [1800, 1800])])
    @awaited
    async def test_lasts_as_long_as_its_kind_says(self, signal, seconds):
        clock = FakeClock()
        destination = Destination(DIRECT_LIMITS, clock=clock)
        for _ in range(3):
            self.signal(destination, signal)
        for expected in seconds:
            with pytest.raises(DestinationBusy) as busy:
                async with destination.slot():
                    pass
            wait = busy.value.outcome.retry_after.total_seconds()
            assert expected < wait <= expected + SPREAD_SECONDS
            clock.now += expected
            async with destination.slot():
                self.signal(destination, signal)

    @awaited
    async def test_ends_with_an_accepted_message_and_with_nothing_else(self):
        clock = FakeClock()
        destination = Destination(DIRECT_LIMITS, clock=clock)
        for _ in range(3):
            self.signal(destination)
        clock.now += 30
        async with destination.slot():
            # An unknown user: the probe proves nothing, and the next message is a probe again.
            destination.record_reply()
        async with destination.slot():
            assert await free_slots(destination) == 0
            destination.record_acceptance()
        assert await free_slots(destination) == 2

    @awaited
    async def test_counts_the_refusals_in_flight_as_one(self):
        clock = FakeClock()
        destination = Destination(DIRECT_LIMITS, clock=clock)
        for _ in range(10):
            self.signal(destination)
        assert destination.pause.seconds_left == 30

    @awaited
    async def test_is_no_longer_than_the_destination_allows(self):
        destination = Destination(INBOX_LIMITS, clock=FakeClock())
        for _ in range(3):
            self.signal(destination)
        assert destination.pause.seconds_left == INBOX_LIMITS.breaker_policy.max_open_seconds

    @awaited
    async def test_is_left_to_the_named_transport_if_its_host_is_in_trouble(self):
        destination = Destination(DestinationLimits(max_connections=20, breaker_policy=NEVER))
        for _ in range(9):
            self.signal(destination, reason=FailureReason.HOST_TROUBLE)
        assert await free_slots(destination) == 1
        for _ in range(3):
            self.signal(destination)
        assert await free_slots(destination) == 0

    @awaited
    async def test_a_connection_failure_does_not_widen_the_window(self):
        destination = Destination(DIRECT_LIMITS)
        self.signal(destination)
        destination.record_failure()
        assert await free_slots(destination) == 1
