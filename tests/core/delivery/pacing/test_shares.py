"""The share of a process of the pace of a receiver: real servers, and a clock of the test (docs/decisions/0362)."""

import asyncio
from dataclasses import replace

import pytest

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryStatus
from core.delivery.pacing import shares
from core.delivery.pacing.pace import PaceLimits
from core.delivery.pacing.pairs import PairKey
from core.delivery.transports.interface import LeaseLost
from core.delivery.transports.smtp.errors import LISTING_WAIT
from tests.core.delivery.local_pairs import LocalPairs
from tests.core.delivery.relaying import FakeClock, awaited
from tests.core.delivery.scripted import ScriptedServer, StubLease, after, then_disconnect
from tests.core.delivery.transports.test_direct import FIRST, SECOND, mail, transport_for, zones
from tests.rows import each

LEASE = StubLease()
KEY = PairKey("", "example.com")
LIMITS = PaceLimits()
SLOW_DOWN = b"421 4.7.28 Gmail has detected an unusual rate of mail originating from your IP address\r\n"
S3150 = (
    b"550 5.7.1 Messages from [127.0.0.1] weren't sent since part of their network is on our block list (S3150).\r\n"
)
DELIVERED, DEFERRED, PARKED = DeliveryStatus.DELIVERED, DeliveryStatus.DEFERRED, DeliveryStatus.PARKED


class Sender:
    """Messages that wait for the pair, released once a second of the clock as by emails.pacing.paces.

    minutes: the attempts of each minute.
    """

    def __init__(self, transport, pairs, clock):
        self.transport, self.pairs, self.clock = transport, pairs, clock
        self.minutes = []
        self.delivered = 0
        self.statuses = []

    async def run(self, seconds):
        for second in range(seconds):
            if second % 60 == 0:
                self.minutes.append(0)
            outcomes = await self.send(self.release())
            self.minutes[-1] += sum(one.status is not PARKED for one in outcomes)
            self.delivered += sum(one.status is DELIVERED for one in outcomes)
            self.clock.now += 1

    async def send(self, count, *, released_for=1):
        messages = [mail(released_for=released_for) for _ in range(min(count, 10))]
        outcomes = await asyncio.gather(*(self.transport.deliver(one, lease=LEASE) for one in messages))
        self.statuses += [one.status for one in outcomes]
        await self.exchanged()
        return outcomes

    async def exchanged(self):
        """Wait until the other processes know what happened."""
        await self.transport._paces._exchange_all()

    def release(self):
        if KEY not in self.pairs.pairs:
            return 2
        now, pair = self.clock.now, self.pairs.pairs[KEY]
        count = pair.available(now, LIMITS)
        self.pairs.pairs[KEY] = pair.release(count, now, LIMITS, is_waiting=True)
        return count

    @property
    def pace(self):
        return self.pairs.pairs[KEY].pace


def sender_for(server, *, addresses=(FIRST,), clock=None):
    clock = clock or FakeClock()
    pairs = LocalPairs(clock)
    return pairs, clock, transport_for(zones(*addresses), server.port, clock=clock, paces=pairs.shares())


class TestAReceiverThatAsksForLess:
    @each("stage", ["banner", "ehlo", "mail", "rcpt", "data", "dot"])
    @awaited
    async def test_gets_a_few_attempts_a_minute_and_more_once_it_accepts(self, stage):
        async with ScriptedServer() as server:
            pairs, clock, transport = sender_for(server)
            async with transport as direct:
                sender = Sender(direct, pairs, clock)
                await sender.run(30)
                before = sender.minutes.pop()
                assert before >= 100
                server.script = {stage: then_disconnect(SLOW_DOWN)}
                direct.close()
                await sender.run(180)
                # Each second halves the rate, but the refusals before the process knew of the first one are one signal
                # with it (docs/decisions/0372).
                assert sender.minutes[0] <= 0.16 * before
                assert sender.minutes[2] <= 4
                server.script = {}
                delivered = sender.delivered
                await sender.run(240)
                assert sender.delivered - delivered >= 10

    @each(
        ("reply", "is_slowed"),
        [(b"450 4.2.0 Greylisted, please try again later\r\n", False), (b"451 4.0.0 Wibble\r\n", True)],
    )
    @awaited
    async def test_is_not_known_by_deferrals_that_concern_the_recipient(self, reply, is_slowed):
        async with ScriptedServer({"rcpt": reply}) as server:
            pairs, clock, transport = sender_for(server)
            async with transport as direct:
                sender = Sender(direct, pairs, clock)
                await sender.run(30)
                assert set(sender.statuses) <= {DEFERRED, PARKED}
                assert (sender.pace.rate(clock.now) is not None) == is_slowed

    @awaited
    async def test_does_not_slow_another_receiver(self):
        async with ScriptedServer({"dot": SLOW_DOWN}) as slow, ScriptedServer(host=SECOND, port=slow.port) as good:
            records = {
                "slow.example": {"MX": ["1 mx.slow.example."]},
                "mx.slow.example": {"A": [FIRST]},
                "good.example": {"MX": ["1 mx.good.example."]},
                "mx.good.example": {"A": [SECOND]},
            }
            async with transport_for(records, slow.port, clock=FakeClock()) as transport:
                for _ in range(10):
                    await transport.deliver(mail("slow.example"), lease=LEASE)
                    outcome = await transport.deliver(mail("good.example"), lease=LEASE)
                    assert outcome.status is DELIVERED
                assert (len(slow.messages), len(good.messages)) == (1, 10)

    @awaited
    async def test_is_left_alone_for_hours_if_it_names_a_block_list(self):
        async with ScriptedServer({"mail": S3150}) as server:
            pairs, clock, transport = sender_for(server)
            async with transport as direct:
                sender = Sender(direct, pairs, clock)
                (first,) = await sender.send(1)
                assert (first.reason, first.retry_after) == (FailureReason.BLOCKLISTED, LISTING_WAIT)
                suspended = sender.pace.suspended_until - clock.now
                assert suspended >= 1800
                assert {one.status for one in await sender.send(5)} == {PARKED}
                clock.now += suspended
                server.script = {}
                await sender.exchanged()
                assert [one.status for one in await sender.send(1)] == [DELIVERED]
                assert len(server.said("MAIL")) == 2

    @awaited
    async def test_lets_released_messages_pass_and_no_others(self):
        async with ScriptedServer({"dot": [SLOW_DOWN, b"250 Ok\r\n"]}) as server:
            pairs, clock, transport = sender_for(server)
            async with transport as direct:
                sender = Sender(direct, pairs, clock)
                await sender.send(1)
                refused = await direct.deliver(mail(), lease=LEASE)
                assert (refused.status, refused.pair, refused.waits_for) == (PARKED, 1, "receiver_pace")
                clock.now += shares.SETTLE_SECONDS
                assert (await direct.deliver(mail(released_for=7), lease=LEASE)).status is PARKED
                assert (await direct.deliver(mail(released_for=1), lease=LEASE)).status is DELIVERED

    @awaited
    async def test_lets_no_message_pass_that_was_released_before_it(self):
        async with ScriptedServer({"dot": [SLOW_DOWN, b"250 Ok\r\n"]}) as server:
            pairs, clock, transport = sender_for(server)
            async with (
                transport as direct,
                transport_for(zones(FIRST), server.port, clock=clock, paces=pairs.shares("two")) as other,
            ):
                sender = Sender(direct, pairs, clock)
                assert (await other.deliver(mail(released_for=1), lease=LEASE)).status is DEFERRED
                await other._paces._exchange_all()
                # The other process learns of it with its next exchange.
                first = [one.status for one in await sender.send(3)]
                assert first == [PARKED] * 3
                clock.now += shares.SETTLE_SECONDS
                assert [one.status for one in await sender.send(1)] == [DELIVERED]


# What a reply after ten accepted messages leaves: connections of four, and whether the rest waits.
EFFECTS = {
    "421 at the dot": ("dot", SLOW_DOWN, 3, True),
    "421 at the banner": ("banner", b"421 4.3.2 Busy\r\n", 3, False),
    "451 at RCPT": ("rcpt", b"451 4.7.500 Server busy\r\n", 3, True),
    "a 550 that is about the rate": ("rcpt", b"550 Ip frequency limited\r\n", 3, True),
    "a block list": ("dot", S3150, 1, True),
    "greylisting": ("rcpt", b"451 4.7.1 Greylisted\r\n", 4, False),
    "a full mailbox": ("rcpt", b"452 4.2.2 Mailbox full\r\n", 4, False),
    "a busy recipient": ("rcpt", b"450 4.2.0 User busy\r\n", 4, False),
    "an unknown user": ("rcpt", b"550 5.1.1 No such user\r\n", 4, False),
    "a recipient that receives too much": (
        "rcpt", b"450 4.2.1 The user you are trying to contact is receiving mail too quickly\r\n", 4, False,
    ),
}  # fmt: skip


@each(("stage", "reply", "connections", "is_limited"), EFFECTS.values())
@awaited
async def test_a_reply_has_its_effect(stage, reply, connections, is_limited):
    async with ScriptedServer() as server:
        pairs, clock, transport = sender_for(server)
        async with transport as direct:
            sender = Sender(direct, pairs, clock)
            while KEY not in pairs.pairs or sender.pace.connections < 4:
                await sender.send(4)
                clock.now += 1
            server.script = {stage: then_disconnect(reply) if reply.startswith(b"421") else reply}
            direct.close()
            clock.now += 1
            await sender.send(1)
            assert sender.pace.connections == connections
            server.script = {}
            after_it = await direct.deliver(mail(), lease=LEASE)
            assert after_it.status is (PARKED if is_limited else DELIVERED)


class TestConnections:
    @awaited
    async def test_grow_with_accepted_messages_up_to_the_limit(self):
        async with ScriptedServer({"dot": after(0.02, b"250 Ok\r\n")}) as server:
            pairs, clock, transport = sender_for(server)
            async with transport as direct:
                sender = Sender(direct, pairs, clock)
                for _ in range(12):
                    clock.now += 1
                    await sender.send(20)
                assert sender.pace.connections == 10
                assert server.most_open <= 10

    @awaited
    async def test_that_are_idle_are_closed_if_fewer_are_allowed(self):
        async with ScriptedServer({"dot": after(0.02, b"250 Ok\r\n")}) as server:
            pairs, clock, transport = sender_for(server)
            async with transport as direct:
                sender = Sender(direct, pairs, clock)
                for _ in range(12):
                    clock.now += 1
                    await sender.send(20)
                (share,) = direct._paces._shares.values()
                assert share.open == 10
                pairs.pairs[KEY] = replace(pairs.pairs[KEY], pace=replace(sender.pace, connections=6))
                await sender.exchanged()
                assert share.open == 6

    @awaited
    async def test_are_those_of_all_processes_together(self):
        async with ScriptedServer({"dot": after(0.02, b"250 Ok\r\n")}) as server:
            clock = FakeClock()
            pairs = LocalPairs(clock)
            records = zones(FIRST)
            async with (
                transport_for(records, server.port, clock=clock, paces=pairs.shares("one")) as one,
                transport_for(records, server.port, clock=clock, paces=pairs.shares("two")) as two,
            ):
                for _ in range(4):
                    messages = [sender.deliver(mail(), lease=LEASE) for sender in (one, two) for _ in range(5)]
                    await asyncio.gather(*messages)
                    assert server.most_open <= pairs.pairs[KEY].pace.connections

    @awaited
    async def test_that_are_idle_are_closed_for_other_hosts_of_the_receiver(self):
        records = {f"{name}.example": {"MX": [f"1 {name}.google.com."]} for name in ("a", "b", "c")}
        records |= {f"{name}.google.com": {"A": [FIRST]} for name in ("a", "b", "c")}
        async with ScriptedServer() as server:
            clock = FakeClock()
            pairs = LocalPairs(clock)
            async with transport_for(records, server.port, clock=clock, paces=pairs.shares()) as transport:
                for name in ("a", "b", "c"):
                    outcome = await transport.deliver(mail(f"{name}.example"), lease=LEASE)
                    assert (outcome.status, outcome.receiver) == (DELIVERED, "google")
                assert list(pairs.pairs) == [PairKey("", "google")]
                assert server.most_open <= pairs.pairs[PairKey("", "google")].pace.connections

    @awaited
    async def test_are_counted_without_the_hosts_that_have_none(self):
        """Microsoft 365 has another host for each domain."""
        names = [f"d{number}" for number in range(30)]
        records = {f"{name}.example": {"MX": [f"1 {name}.mail.protection.outlook.com."]} for name in names}
        records |= {f"{name}.mail.protection.outlook.com": {"A": [FIRST]} for name in names}
        async with ScriptedServer() as server:
            clock = FakeClock()
            pairs = LocalPairs(clock)
            async with transport_for(records, server.port, clock=clock, paces=pairs.shares()) as transport:
                for name in names:
                    assert (await transport.deliver(mail(f"{name}.example"), lease=LEASE)).status is DELIVERED
                    await transport._paces._exchange_all()
                (share,) = transport._paces._shares.values()
                assert len(share.owners) <= share.open <= pairs.pairs[share.key].pace.connections

    @awaited
    async def test_are_not_opened_without_a_database(self, monkeypatch):
        async def lost(_):
            raise LeaseLost

        monkeypatch.setattr(shares, "WAIT_SECONDS", 0.05)
        async with ScriptedServer() as server:
            options = {"clock": FakeClock(), "paces": shares.PaceShares(lost)}
            async with transport_for(zones(FIRST), server.port, **options) as transport:
                outcome = await transport.deliver(mail(), lease=LEASE)
        assert (outcome.status, outcome.pair, outcome.waits_for) == (PARKED, 0, "destination")
        assert server.connections == 0

    @awaited
    async def test_reports_reach_the_database_once_it_answers(self):
        clock = FakeClock()
        pairs = LocalPairs(clock)
        working = pairs.shares()._exchange
        is_down = False

        async def exchange(reports):
            if is_down:
                raise LeaseLost
            return await working(reports)

        async with ScriptedServer({"dot": [b"250 Ok\r\n", SLOW_DOWN]}) as server:
            paces = shares.PaceShares(exchange, clock=clock)
            async with transport_for(zones(FIRST), server.port, clock=clock, paces=paces) as transport:
                await transport.deliver(mail(), lease=LEASE)
                is_down = True
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(shares, "EVERY_SECONDS", 0.0)
                    await transport.deliver(mail(), lease=LEASE)
                    await paces._exchange_all()
                is_down = False
                await paces._exchange_all()
                pace = pairs.pairs[KEY].pace
                assert (sum(pace.accepted), pace.rate(clock.now) is not None) == (1, True)
