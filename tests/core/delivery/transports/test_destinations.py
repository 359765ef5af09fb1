"""Destinations: connection limits, and isolation of broken destinations from others."""

import asyncio

import pytest

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, parked
from core.delivery.transports import destinations
from core.delivery.transports.circuit_breaker import BreakerPolicy, CircuitBreaker
from core.delivery.transports.destinations import Destination, DestinationBusy, DestinationLimits, Destinations
from core.delivery.transports.expiring_set import ExpiringSet
from core.delivery.transports.relay import RelayTransport
from core.delivery.transports.smtp.mail_host import Timeouts
from tests.core.delivery.relaying import MESSAGE, FakeClock, awaited, relay
from tests.core.delivery.scripted import ScriptedServer, StubLease, after, disconnect, silence

LEASE = StubLease()
PATIENT = Timeouts()


async def together(transport: RelayTransport, count: int) -> list[DeliveryOutcome]:
    return await asyncio.gather(*[transport.deliver(MESSAGE, lease=LEASE) for _ in range(count)])


class TestLimits:
    @awaited
    async def test_no_more_connections_than_allowed(self):
        async with ScriptedServer({"dot": after(0.05, b"250 Ok\r\n")}) as server:
            transport = relay(server, limits=DestinationLimits(max_connections=3), timeouts=PATIENT)
            statuses = [one.status for one in await together(transport, 5)]
            assert server.most_open == 3
            assert statuses.count(DeliveryStatus.SENT) == 3
            assert statuses.count(DeliveryStatus.PARKED) == 2

    @awaited
    async def test_a_parked_message_was_not_tried(self):
        async with ScriptedServer({"dot": silence}) as server:
            transport = relay(server, limits=DestinationLimits(max_connections=1), timeouts=PATIENT)
            busy = asyncio.create_task(transport.deliver(MESSAGE, lease=LEASE))
            while not server.messages:
                await asyncio.sleep(0.01)
            outcome = await transport.deliver(MESSAGE, lease=LEASE)
            assert (outcome.status, outcome.reason) == (DeliveryStatus.PARKED, FailureReason.DESTINATION_FULL)
            assert server.connections == 1
            busy.cancel()

    @awaited
    async def test_a_slot_of_an_active_destination_is_waited_for(self):
        async with ScriptedServer({"dot": after(0.01, b"250 Ok\r\n")}) as server:
            transport = relay(server, limits=DestinationLimits(max_connections=2), timeouts=PATIENT)
            await together(transport, 1)
            statuses = {one.status for one in await together(transport, 8)}
            assert (statuses, server.most_open) == ({DeliveryStatus.SENT}, 2)

    @awaited
    async def test_a_new_destination_starts_with_a_small_window_that_grows_with_replies(self):
        async with ScriptedServer({"dot": after(0.02, b"250 Ok\r\n")}) as server:
            transport = relay(
                server, limits=DestinationLimits(max_connections=4, initial_connections=1), timeouts=PATIENT
            )
            sent = []
            for _ in range(4):
                transport._destination._last_reply_at = float("-inf")
                outcomes = await together(transport, 6)
                sent.append(sum(one.status is DeliveryStatus.SENT for one in outcomes))
            assert sent[0] == 1
            assert sorted(sent) == sent
            assert (sent[-1], server.most_open) == (4, 4)

    @awaited
    async def test_a_waiter_that_times_out_is_removed(self, monkeypatch):
        monkeypatch.setattr(destinations, "WAIT_SECONDS", 0.02)
        destination = Destination(DestinationLimits(max_connections=1))
        destination.record_refusal(parked(FailureReason.UNKNOWN_USER, "No such user."))
        async with destination.slot():
            with pytest.raises(DestinationBusy):
                async with destination.slot():
                    pass
            waiting = asyncio.create_task(destination._wait_for_release())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert not destination._waiters
        async with destination.slot():
            pass


def breaker_after(failures: int) -> tuple[CircuitBreaker, FakeClock]:
    """Return a breaker that opens for 30 s at first after a number of failures, and its clock."""
    policy = BreakerPolicy(failure_threshold=failures, initial_open_seconds=30, max_open_seconds=100)
    clock = FakeClock()
    return CircuitBreaker(policy, clock=clock), clock


class TestCircuitBreaker:
    def test_failures_in_a_row_double_the_open_time(self):
        breaker, clock = breaker_after(3)
        for _ in range(2):
            breaker.record_failure()
            assert not breaker.is_open
        waits = []
        for _ in range(4):
            breaker.record_failure()
            began = clock.now
            while breaker.is_open:
                clock.now += 1
            waits.append(clock.now - began)
        assert waits == [30, 60, 100, 100]

    def test_one_probe_at_a_time_decides(self):
        breaker, clock = breaker_after(1)
        breaker.record_failure()
        clock.now += 31
        assert not breaker.is_open
        with breaker.call():
            assert breaker.is_open, "other calls are rejected during the probe"
        assert not breaker.is_open, "the probe ended without a result"
        with breaker.call():
            breaker.record_success()
        assert not breaker.is_open
        assert not breaker.is_tripped

    def test_calls_under_way_when_the_breaker_opens_do_not_count(self):
        breaker, clock = breaker_after(3)
        for _ in range(20):
            breaker.record_failure()
        clock.now += 31
        assert not breaker.is_open

    def test_a_success_resets_the_failure_count(self):
        breaker, _ = breaker_after(2)
        breaker.record_failure()
        breaker.record_success()
        breaker.record_failure()
        assert not breaker.is_open

    @awaited
    async def test_a_destination_that_is_down_is_paused(self):
        breaker_policy = BreakerPolicy(failure_threshold=2, initial_open_seconds=0.1, max_open_seconds=1)
        async with ScriptedServer({"banner": [disconnect, disconnect, b"220 Hi\r\n"]}) as server:
            transport = relay(server, limits=DestinationLimits(breaker_policy=breaker_policy))
            outcomes = [await transport.deliver(MESSAGE, lease=LEASE) for _ in range(4)]
            assert [one.status for one in outcomes] == [DeliveryStatus.DEFERRED] * 2 + [DeliveryStatus.PARKED] * 2
            assert (outcomes[3].reason, server.connections) == (FailureReason.DESTINATION_SHUT, 2)
            await asyncio.sleep(0.15)
            assert (await transport.deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.SENT

    @awaited
    async def test_a_refused_message_does_not_trip_the_breaker(self):
        async with ScriptedServer({"rcpt": b"550 5.1.1 Unknown\r\n"}) as server:
            transport = relay(server, limits=DestinationLimits(breaker_policy=BreakerPolicy(failure_threshold=1)))
            for _ in range(3):
                assert (await transport.deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.BOUNCED


class TestMemory:
    def test_unused_destinations_are_evicted(self):
        many = Destinations(DestinationLimits(), max_size=10)
        for number in range(1000):
            many.get_or_create(number)
        assert len(many._by_key) <= 10

    def test_a_destination_with_a_tripped_breaker_is_kept(self):
        many = Destinations(DestinationLimits(breaker_policy=BreakerPolicy(failure_threshold=1)), max_size=10)
        tripped = many.get_or_create("tripped")
        tripped.record_failure()
        for number in range(100):
            many.get_or_create(number)
        assert many.get_or_create("tripped") is tripped

    def test_names_of_an_expiring_set_expire(self):
        names = ExpiringSet(ttl_seconds=60, max_size=2)
        for name in "abc":
            names.add(name)
        assert [name in names for name in "abc"] == [False, True, True]
        past = ExpiringSet(ttl_seconds=-1)
        past.add("a")
        assert "a" not in past
