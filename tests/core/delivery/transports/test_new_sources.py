"""New, listed and suspended source addresses of a direct transport, with real servers (docs/decisions/0366, 0367)."""

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from ipaddress import ip_address

from core.delivery.bounces.replies import DeliveryStatus
from core.delivery.pacing.pairs import PairKey
from core.delivery.pacing.volumes import LEAST_TAKEN_OVER
from core.delivery.transports.source_addresses import OwnAddresses
from tests.core.delivery.local_pairs import LocalPairs
from tests.core.delivery.relaying import FakeClock, awaited
from tests.core.delivery.scripted import ScriptedServer, StubLease
from tests.core.delivery.transports.test_direct import FIRST, mail, transport_for, zones

LEASE = StubLease()
DAY = date(2026, 12, 1)
WARM, NEW, OTHER = (ip_address(f"127.0.0.{number}") for number in (11, 12, 13))
DELIVERED, PARKED = DeliveryStatus.DELIVERED, DeliveryStatus.PARKED
S3150 = (
    b"550 5.7.1 Messages from [127.0.0.1] weren't sent since part of their network is on our block list (S3150).\r\n"
)


class Sender:
    """A direct transport with addresses of this machine. listed: those that a block list has."""

    def __init__(self, own, server):
        self.own, self.server, self.listed = own, server, set()
        self.clock = FakeClock(datetime(2026, 12, 1, tzinfo=UTC).timestamp())
        self.pairs = LocalPairs(self.clock)

    async def find_listed(self):
        return self.listed

    def options(self):
        return {
            "own": lambda: self.own, "listed": self.find_listed, "clock": self.clock, "paces": self.pairs.shares(),
        }  # fmt: skip

    async def send(self, count, **fields):
        """Send messages of one stream in turn; return their outcomes."""
        outcomes = [await self.transport.deliver(mail(**fields), lease=LEASE) for _ in range(count)]
        await self.transport._paces._exchange_all()
        return outcomes

    def accepted(self, address):
        """Return the messages of the present day from an address."""
        pair = self.pairs.pairs.get(PairKey(str(address), "example.com"))
        today = datetime.fromtimestamp(self.clock(), UTC).date()
        return pair.volume.sent if pair and pair.volume.day == today else 0

    async def pass_day(self):
        self.clock.now += 86_400
        await self.transport._paces._exchange_all()


@asynccontextmanager
async def sending(own, *, records=None, script=None):
    async with ScriptedServer(script or {}) as server:
        sender = Sender(own, server)
        async with transport_for(records or zones(FIRST), server.port, **sender.options()) as transport:
            sender.transport = transport
            yield sender


@awaited
async def test_what_exceeds_the_messages_of_the_day_leaves_by_the_other_address():
    async with sending(OwnAddresses((WARM, NEW), {NEW: DAY})) as sender:
        outcomes = await sender.send(60)
        assert {one.status for one in outcomes} == {DELIVERED}
        assert (sender.accepted(NEW), sender.accepted(WARM)) == (50, 10)
        await sender.pass_day()
        await sender.pass_day()
        await sender.send(110)
        assert (sender.accepted(NEW), sender.accepted(WARM)) == (100, 10)


@awaited
async def test_without_another_address_it_is_offered_to_the_next_transport():
    async with sending(OwnAddresses((NEW,), {NEW: DAY})) as sender:
        await sender.send(50)
        (outcome,) = await sender.send(1)
        assert (outcome.status, outcome.exceeds_day, outcome.pair) == (PARKED, True, 1)
        assert outcome.reply.text == "This address is new, and has sent the receiver its messages of the day."
        await sender.pass_day()
        assert [one.status for one in await sender.send(1)] == [DELIVERED]


@awaited
async def test_with_overflow_wait_it_waits_for_its_own_address():
    async with sending(OwnAddresses((WARM, NEW), {NEW: DAY}, overflows=False)) as sender:
        streams = [f"s{number}" for number in range(12)]
        for stream in streams:
            for outcome in await sender.send(10, stream=stream):
                assert outcome.status is DELIVERED or (outcome.pair and not outcome.exceeds_day)
        assert sender.accepted(NEW) == 50
        # The other address has only the messages of its own streams.
        assert sender.accepted(WARM) % 10 == 0
        assert 0 < sender.accepted(WARM) < 70


@awaited
async def test_messages_at_the_same_time_do_not_exceed_the_number():
    async with sending(OwnAddresses((WARM, NEW), {NEW: DAY})) as sender:
        for _ in range(4):
            await asyncio.gather(*(sender.transport.deliver(mail(), lease=LEASE) for _ in range(25)))
            await sender.transport._paces._exchange_all()
        assert sender.accepted(NEW) <= 50
        assert len(sender.server.messages) >= 90


@awaited
async def test_a_refused_message_does_not_count():
    script = {"rcpt": [b"550 5.1.1 No such user\r\n"] * 5 + [b"250 Ok\r\n"]}
    async with sending(OwnAddresses((WARM, NEW), {NEW: DAY}), script=script) as sender:
        await sender.send(55)
        assert (sender.accepted(NEW), sender.accepted(WARM)) == (50, 0)


@awaited
async def test_a_source_that_cannot_reach_the_mail_host_is_not_chosen():
    v6 = ip_address("::1")
    async with sending(OwnAddresses((WARM, v6), {v6: DAY})) as sender:
        assert {one.status for one in await sender.send(3)} == {DELIVERED}
        assert sender.accepted(WARM) == 3


class TestTakenOver:
    """Two warm addresses, of which the one of the stream is listed or suspended."""

    async def used(self, sender, *, before):
        """Send from both addresses, so many from the one that is not of the stream; return both a day later."""
        await sender.send(1)
        home, other = (WARM, OTHER) if sender.accepted(WARM) else (OTHER, WARM)
        sender.listed = {home}
        await sender.send(before)
        sender.listed = set()
        await sender.pass_day()
        return home, other

    @awaited
    async def test_of_a_listed_address_are_at_most_twice_those_of_the_day_before(self):
        async with sending(OwnAddresses((WARM, OTHER))) as sender:
            home, other = await self.used(sender, before=30)
            sender.listed = {home}
            outcomes = await sender.send(70)
            assert sender.accepted(other) == 60
            assert sender.accepted(home) == 0
            assert [one.status for one in outcomes] == [DELIVERED] * 60 + [PARKED] * 10
            assert {(one.reason, one.exceeds_day) for one in outcomes[60:]} == {("blocklisted", False)}
            await sender.pass_day()
            await sender.send(130)
            assert sender.accepted(other) == 120

    @awaited
    async def test_of_a_suspended_address_wait_for_it(self):
        async with sending(OwnAddresses((WARM, OTHER))) as sender:
            home, other = await self.used(sender, before=0)
            sender.server.script = {"mail": S3150}
            sender.transport.close()
            await sender.send(1)
            sender.server.script = {}
            outcomes = await sender.send(LEAST_TAKEN_OVER + 5)
            assert (sender.accepted(home), sender.accepted(other)) == (0, LEAST_TAKEN_OVER)
            number = 1 + list(sender.pairs.pairs).index(PairKey(str(home), "example.com"))
            assert {(one.status, one.pair, one.reason) for one in outcomes[-5:]} == {(PARKED, number, "blocklisted")}

    @awaited
    async def test_do_not_limit_those_of_the_address_itself(self):
        async with sending(OwnAddresses((WARM, OTHER))) as sender:
            home, other = await self.used(sender, before=0)
            sender.listed = {other}
            await sender.send(LEAST_TAKEN_OVER + 5)
            assert (sender.accepted(home), sender.accepted(other)) == (LEAST_TAKEN_OVER + 5, 0)
