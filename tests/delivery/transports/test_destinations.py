"""Limits on each destination, and what keeps a broken one from costing the others anything."""

import asyncio

import pytest

from delivery.bounces.reasons import Reason
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus
from delivery.transports import destinations
from delivery.transports.circuit_breaker import Circuit, Fuse
from delivery.transports.destinations import Destination, DestinationBusy, Destinations, Limits
from delivery.transports.expiring_set import ExpiringSet
from delivery.transports.relay import RelayTransport
from delivery.transports.smtp.server import Timeouts
from tests.delivery.relaying import PARCEL, relay, run
from tests.delivery.scripted import HeldLease, ScriptedServer, after, disconnect, silence

LEASE = HeldLease()
PATIENT = Timeouts()


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def together(transport: RelayTransport, count: int) -> list[DeliveryOutcome]:
    return await asyncio.gather(*[transport.deliver(PARCEL, lease=LEASE) for _ in range(count)])


class TestLimits:
    def test_no_more_connections_than_allowed(self):
        async def work() -> None:
            async with ScriptedServer({"dot": after(0.05, b"250 Ok\r\n")}) as server:
                transport = relay(server, limits=Limits(connections=3), timeouts=PATIENT)
                verdicts = [one.verdict for one in await together(transport, 5)]
                assert server.most_open == 3
                assert verdicts.count(DeliveryStatus.SENT) == 3
                assert verdicts.count(DeliveryStatus.PARKED) == 2

        run(work())

    def test_a_parked_message_was_not_tried(self):
        async def work() -> None:
            async with ScriptedServer({"dot": silence}) as server:
                transport = relay(server, limits=Limits(connections=1), timeouts=PATIENT)
                busy = asyncio.create_task(transport.deliver(PARCEL, lease=LEASE))
                while not server.messages:
                    await asyncio.sleep(0.01)
                outcome = await transport.deliver(PARCEL, lease=LEASE)
                assert (outcome.verdict, outcome.reason) == (DeliveryStatus.PARKED, Reason.DESTINATION_FULL)
                assert server.connections == 1
                busy.cancel()

        run(work())

    def test_where_mail_is_moving_a_place_is_waited_for(self):
        async def work() -> None:
            async with ScriptedServer({"dot": after(0.01, b"250 Ok\r\n")}) as server:
                transport = relay(server, limits=Limits(connections=2), timeouts=PATIENT)
                await together(transport, 1)
                verdicts = {one.verdict for one in await together(transport, 8)}
                assert (verdicts, server.most_open) == ({DeliveryStatus.SENT}, 2)

        run(work())

    def test_a_newcomer_begins_small_and_grows_by_what_it_takes(self):
        async def work() -> None:
            async with ScriptedServer({"dot": after(0.02, b"250 Ok\r\n")}) as server:
                transport = relay(server, limits=Limits(connections=4, first=1), timeouts=PATIENT)
                sent = []
                for _ in range(4):
                    transport._lane._moved_at = float("-inf")
                    outcomes = await together(transport, 6)
                    sent.append(sum(one.verdict is DeliveryStatus.SENT for one in outcomes))
                assert sent[0] == 1
                assert sorted(sent) == sent
                assert (sent[-1], server.most_open) == (4, 4)

        run(work())

    def test_who_waited_in_vain_leaves_nothing_behind(self, monkeypatch):
        monkeypatch.setattr(destinations, "WAIT_SECONDS", 0.02)

        async def work() -> None:
            lane = Destination(Limits(connections=1))
            lane.moved()
            async with lane.place():
                with pytest.raises(DestinationBusy):
                    async with lane.place():
                        pass
                waiting = asyncio.create_task(lane._let_in())
                await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
                assert not lane._waiting
            async with lane.place():
                pass

        run(work())


class TestTheFuse:
    def test_failures_in_a_row_shut_it_for_twice_as_long_each_time(self):
        clock = FakeClock()
        circuit = Circuit(Fuse(failures=3, first_seconds=30, longest_seconds=100), clock=clock)
        for _ in range(2):
            circuit.fail()
            assert not circuit.is_open
        waits = []
        for _ in range(4):
            circuit.fail()
            began = clock.now
            while circuit.is_open:
                clock.now += 1
            waits.append(clock.now - began)
        assert waits == [30, 60, 100, 100]

    def test_one_probe_at_a_time_decides(self):
        clock = FakeClock()
        circuit = Circuit(Fuse(failures=1, first_seconds=30, longest_seconds=100), clock=clock)
        circuit.fail()
        clock.now += 31
        assert not circuit.is_open
        with circuit.passage():
            assert circuit.is_open, "the others wait for the probe"
        assert not circuit.is_open, "it came back without news"
        with circuit.passage():
            circuit.succeed()
        assert not circuit.is_open
        assert not circuit.is_blown

    def test_failures_that_were_under_way_count_once(self):
        clock = FakeClock()
        circuit = Circuit(Fuse(failures=3, first_seconds=30, longest_seconds=1000), clock=clock)
        for _ in range(20):
            circuit.fail()
        clock.now += 31
        assert not circuit.is_open

    def test_a_success_in_between_begins_anew(self):
        circuit = Circuit(Fuse(failures=2), clock=FakeClock())
        circuit.fail()
        circuit.succeed()
        circuit.fail()
        assert not circuit.is_open

    def test_a_destination_that_is_down_is_left_alone(self):
        async def work() -> None:
            fuse = Fuse(failures=2, first_seconds=0.1, longest_seconds=1)
            async with ScriptedServer({"banner": [disconnect, disconnect, b"220 Hi\r\n"]}) as server:
                transport = relay(server, limits=Limits(fuse=fuse))
                outcomes = [await transport.deliver(PARCEL, lease=LEASE) for _ in range(4)]
                assert [one.verdict for one in outcomes] == [DeliveryStatus.DEFERRED] * 2 + [DeliveryStatus.PARKED] * 2
                assert (outcomes[3].reason, server.connections) == (Reason.DESTINATION_SHUT, 2)
                await asyncio.sleep(0.15)
                assert (await transport.deliver(PARCEL, lease=LEASE)).verdict is DeliveryStatus.SENT

        run(work())

    def test_a_refused_message_is_no_failure_of_the_host(self):
        async def work() -> None:
            async with ScriptedServer({"rcpt": b"550 5.1.1 Unknown\r\n"}) as server:
                transport = relay(server, limits=Limits(fuse=Fuse(failures=1)))
                for _ in range(3):
                    assert (await transport.deliver(PARCEL, lease=LEASE)).verdict is DeliveryStatus.BOUNCED

        run(work())


class TestMemory:
    def test_lanes_that_hold_nothing_are_forgotten(self):
        many = Destinations(Limits(), most=10)
        for number in range(1000):
            many.lane(number)
        assert len(many._by_key) <= 10

    def test_a_lane_with_a_blown_fuse_is_kept(self):
        many = Destinations(Limits(fuse=Fuse(failures=1)), most=10)
        shut = many.lane("shut")
        shut.failed()
        for number in range(100):
            many.lane(number)
        assert many.lane("shut") is shut

    def test_notes_are_forgotten(self):
        notes = ExpiringSet(seconds=60, most=2)
        for name in "abc":
            notes.add(name)
        assert [name in notes for name in "abc"] == [False, True, True]
        past = ExpiringSet(seconds=-1)
        past.add("a")
        assert "a" not in past
