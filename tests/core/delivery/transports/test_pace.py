"""A relay that asks for less email gets less (docs/decisions/0278): real servers, with the clock of the pauses."""

from contextlib import AsyncExitStack

import pytest

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.delivery.bounces.signals import LISTED, SLOW, Signal, SignalKind
from core.delivery.transports.circuit_breaker import NEVER
from core.delivery.transports.destinations import SPREAD_SECONDS, Destination, DestinationBusy, DestinationLimits
from core.delivery.transports.relay import INBOX_LIMITS
from tests.core.delivery.relaying import MESSAGE, FakeClock, awaited, relay
from tests.core.delivery.scripted import ScriptedServer, StubLease, then_disconnect
from tests.rows import each

LEASE = StubLease()
SUSPEND = Signal(SignalKind.SUSPEND)
LIMITS = DestinationLimits(max_connections=10, initial_connections=2)
SLOW_DOWN = b"421 4.7.28 Gmail has detected an unusual rate of mail originating from your IP address\r\n"


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


class TestARelayThatAsksForLess:
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
    def signal(self, destination, signal=SLOW, reason=FailureReason.RATE_LIMITED):
        destination.record_signal(signal, refusal(reason))

    @each(("signal", "seconds"), [(SLOW, [30, 60, 60, 60]), (SUSPEND, [30, 60, 120, 240]), (LISTED, [1800, 1800])])
    @awaited
    async def test_lasts_as_long_as_its_kind_says(self, signal, seconds):
        clock = FakeClock()
        destination = Destination(LIMITS, clock=clock)
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
        destination = Destination(LIMITS, clock=clock)
        for _ in range(3):
            self.signal(destination)
        clock.now += 30
        async with destination.slot():
            # An unknown user: the probe proves nothing, and the next message is a probe again.
            destination.record_refusal(refusal(FailureReason.UNKNOWN_USER))
        async with destination.slot():
            assert await free_slots(destination) == 0
            destination.record_acceptance()
        assert await free_slots(destination) == 2

    @awaited
    async def test_counts_the_refusals_in_flight_as_one(self):
        clock = FakeClock()
        destination = Destination(LIMITS, clock=clock)
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
        destination = Destination(LIMITS)
        self.signal(destination)
        destination.record_failure()
        assert await free_slots(destination) == 1
