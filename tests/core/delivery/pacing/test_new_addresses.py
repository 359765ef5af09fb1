"""A new address beside a warm one: thirty days of a clock of the test, with several processes (docs/decisions/0366)."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from ipaddress import ip_address

import pytest

from core.delivery.pacing import shares
from core.delivery.pacing.choice import SourceRanking
from core.delivery.pacing.pairs import PairKey
from core.delivery.pacing.shares import DayUsedUp
from core.delivery.receivers_file import built_in_receivers
from core.delivery.transports.destinations import DestinationBusy
from core.delivery.transports.source_addresses import OwnAddresses
from tests.core.delivery.local_pairs import LocalPairs
from tests.core.delivery.relaying import FakeClock, awaited

FIRST_DAY = date(2026, 12, 1)
MIDNIGHT = datetime(2026, 12, 1, tzinfo=UTC).timestamp()
WARM, NEW = ip_address("192.0.2.1"), ip_address("192.0.2.2")
OWN = OwnAddresses((WARM, NEW), {NEW: FIRST_DAY})
RECEIVER = built_in_receivers().receiver_of_key("google")
STREAMS = ["main", "news", "codes"]
HOURS = 8
# Messages of a day at most, so that the test takes seconds.
MOST_A_DAY = 1_000


class Connection:
    """A destination without idle sessions."""

    idle_sessions = 0

    def close_idle_session(self):
        raise AssertionError


@dataclass
class Worker:
    """A process that sends: sent has the number of messages by source, reported those that the others know of."""

    paces: shares.PaceShares
    clock: FakeClock
    own: OwnAddresses = OWN
    sent: dict[str, int] = field(default_factory=dict)
    waiting: int = 0

    async def send(self, stream):
        """Send one message; return its source, or None if it waits."""
        ranking = SourceRanking(self.own.options(()), self.paces, stream=stream, receiver=RECEIVER)
        for choice in ranking.choices(released_for=0, overflows=self.own.overflows):
            try:
                await choice.share.enter(Connection(), released_for=0, is_taken_over=choice.is_taken_over)
            except DayUsedUp:
                continue
            except DestinationBusy:
                break
            with choice.share.using():
                await asyncio.sleep(0)
                choice.share.record_acceptance(self.clock())
            self.sent[choice.option.name] = self.sent.get(choice.option.name, 0) + 1
            return choice.option.name
        self.waiting += 1
        return None

    async def send_many(self, count):
        for number in range(count):
            await self.send(STREAMS[number % len(STREAMS)])


class Installation:
    """Processes that share the pairs, one of which is killed at times."""

    def __init__(self, count=3):
        self.clock = FakeClock(MIDNIGHT)
        self.pairs = LocalPairs(self.clock)
        self.started = 0
        self.workers = [self.start() for _ in range(count)]
        self.killed = []

    def start(self):
        self.started += 1
        return Worker(self.pairs.shares(f"worker{self.started}"), self.clock)

    async def report(self):
        for worker in self.workers:
            await worker.paces._exchange_all()

    async def run_day(self, messages, *, kills=False):
        """Send messages; return those of the new address, and the messages of the leases of killed processes."""
        before, lost = self.sent(NEW), 0
        for hour in range(HOURS):
            await self.report()
            share = messages // HOURS // len(self.workers)
            await asyncio.gather(*(worker.send_many(share) for worker in self.workers))
            if kills and hour == 2:
                lost = self.kill()
            await self.report()
            self.clock.now += 86_400 / HOURS
        return self.sent(NEW) - before, lost

    def kill(self):
        """End a process that has not reported what it did; return the messages of its lease."""
        self.killed.append(self.workers.pop())
        lease = self.pairs.pairs[PairKey(str(NEW), RECEIVER.key)].leases.get(f"worker{self.started}")
        self.workers.append(self.start())
        return lease.messages if lease else 0

    def sent(self, address):
        return sum(worker.sent.get(str(address), 0) for worker in (*self.workers, *self.killed))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(shares, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(shares, "EVERY_SECONDS", 0.005)
    # A busy machine is not a receiver without connections.
    monkeypatch.setattr(shares, "WAIT_SECONDS", 10.0)


@pytest.mark.parametrize("kills", [False, True])
@awaited
async def test_thirty_days_exceed_no_number_by_more_than_a_lease_and_nothing_waits(kills):
    installation = Installation()
    for day, number in enumerate(RECEIVER.warm_up):
        offered = min(3 * number, MOST_A_DAY)
        sent, lost = await installation.run_day(offered, kills=kills and day % 5 == 1)
        assert sent <= number + lost, day
        # The rest of the number goes to the new address, for any stream.
        assert sent >= 0.9 * min(number, offered - len(STREAMS) * HOURS), day
        assert installation.sent(WARM) > 0
    assert sum(worker.waiting for worker in (*installation.workers, *installation.killed)) == 0
    installation.clock.now = MIDNIGHT + 30 * 86_400
    await installation.workers[0].send_many(5)
    await installation.report()
    share = installation.workers[0].paces.get(PairKey(str(NEW), RECEIVER.key), RECEIVER, since=FIRST_DAY)
    assert not share.is_warming_up


class TestChoice:
    async def sources(self, own, *, days=0.0, count=60, streams=("main",)):
        installation = Installation(1)
        installation.clock.now += days * 86_400
        (worker,) = installation.workers
        worker.own = own
        return [await worker.send(stream) for stream in streams for _ in range(count)]

    @awaited
    async def test_a_stream_keeps_its_address(self):
        warm = OwnAddresses(tuple(ip_address(f"192.0.2.{number}") for number in range(1, 5)))
        streams = [f"s{number}" for number in range(20)]
        sources = await self.sources(warm, count=3, streams=streams)
        assert all(len(set(sources[start : start + 3])) == 1 for start in range(0, 60, 3))
        assert len(set(sources)) > 1

    @awaited
    async def test_the_new_address_comes_first_and_what_exceeds_its_number_leaves_by_the_other(self):
        sources = await self.sources(OWN)
        assert sources == [str(NEW)] * 50 + [str(WARM)] * 10

    @awaited
    async def test_what_exceeds_it_waits_without_another_way(self):
        sources = await self.sources(OwnAddresses((NEW,), {NEW: FIRST_DAY}))
        assert sources == [str(NEW)] * 50 + [None] * 10

    @awaited
    async def test_an_address_sends_nothing_before_its_first_day(self):
        own = OwnAddresses((WARM, NEW), {NEW: FIRST_DAY + timedelta(days=1)})
        assert set(await self.sources(own)) == {str(WARM)}

    @awaited
    async def test_addresses_of_both_families_with_one_day_are_one_source(self):
        v6, other = ip_address("2001:db8::1"), ip_address("2001:db8::2")
        own = OwnAddresses((WARM, v6, NEW, other), {NEW: FIRST_DAY, other: FIRST_DAY})
        names = [option.name for option in own.options(())]
        assert names == ["192.0.2.1 2001:db8::1", "192.0.2.2 2001:db8::2"]
        (listed, left) = own.options({WARM})
        assert (listed.is_listed, left.is_listed, left.addresses) == (True, False, (NEW, other))
        # The names stay, and the numbers of the new one with them.
        assert [option.name for option in own.options({WARM, other})] == names
        assert [option.since for option in own.options({WARM, other})] == [None, FIRST_DAY]
