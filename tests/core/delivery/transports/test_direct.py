"""Direct transport: hosts are tried in order, and no other host after the message was sent."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from ipaddress import ip_address
from typing import Any

import pytest

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryStatus, SuppressOn
from core.delivery.message.compose import OutgoingMessage
from core.delivery.receivers import Receiver, ReceiverTable
from core.delivery.receivers_file import built_in_receivers
from core.delivery.transports.destinations import DestinationLimits
from core.delivery.transports.direct import DirectTransport, _Route
from core.delivery.transports.interface import LeaseLost
from core.delivery.transports.smtp.mail_host import Timeouts
from core.delivery.transports.smtp.mx import MxLookup
from core.delivery.transports.smtp.tls import TlsMode
from core.delivery.transports.source_addresses import SourceChoice
from core.delivery.transports.tls_policies.policies import DomainTlsPolicy
from core.lib.network.address_guard import Guard
from core.lib.network.resolver import Resolver
from tests.core.delivery.local_pairs import LocalPairs
from tests.core.delivery.relaying import SHORT, awaited, run
from tests.core.delivery.scripted import Closed, ScriptedServer, StubLease, disconnect, drip, outgoing_message, silence
from tests.core.lib.nameserver import SERVFAIL, NameServer
from tests.rows import each

LEASE = StubLease()
# Hosts on one port of several loopback addresses.
FIRST, SECOND, THIRD = "127.0.0.1", "127.0.0.2", "127.0.0.3"


def mail(domain: str = "example.com", **fields: Any) -> OutgoingMessage:
    return outgoing_message(recipient=f"ada@{domain}", **fields)


def zones(*addresses: str) -> dict[str, Any]:
    """Return the zone example.com with a host at each address, the first one preferred."""
    hosts = {f"mx{number}.example.com": {"A": [address]} for number, address in enumerate(addresses)}
    return {"example.com": {"MX": [f"{number} {host}." for number, host in enumerate(hosts)]}, **hosts}


@asynccontextmanager
async def transport_for(
    records: dict[str, Any], port: int, *, guard: Guard | None = None, **options: Any
) -> AsyncIterator[DirectTransport]:
    with NameServer(records) as server:
        resolver = Resolver([server.address], lifetime_seconds=5)
        mx = MxLookup(resolver, guard or Guard(allow_private=True), own_names=["me.example.net"])
        given = {"timeouts": SHORT, "receivers": built_in_receivers(), "clock": time.monotonic, **options}
        given.setdefault("paces", LocalPairs(given["clock"]).shares())
        transport = DirectTransport(mx, ehlo_name="me.example.net", port=port, **given)
        try:
            yield transport
        finally:
            transport.close()


def try_hosts(
    first: ScriptedServer, check: Callable[[DirectTransport, ScriptedServer, ScriptedServer], Awaitable[None]]
) -> None:
    """Run a check with the hosts of example.com: `first` is preferred, the second accepts mail."""

    async def work() -> None:
        async with (
            first,
            ScriptedServer(host=SECOND, port=first.port) as second,
            transport_for(zones(FIRST, SECOND), first.port) as transport,
        ):
            await check(transport, first, second)

    run(work())


class TestNextHost:
    @each("script", [
        {"banner": b"421 4.3.2 Busy\r\n"}, {"banner": b"554 5.7.1 Go away\r\n"}, {"banner": disconnect},
        {"banner": silence}, {"banner": b"no smtp\r\n"}, {"ehlo": b"421 Busy\r\n"}, {"ehlo": disconnect},
        {"mail": disconnect}, {"rcpt": disconnect},
    ])  # fmt: skip
    def test_is_tried_when_the_first_is_unusable(self, script):
        async def check(transport, first, second) -> None:
            outcome = await transport.deliver(mail(), lease=LEASE)
            assert (outcome.status, len(second.messages)) == (DeliveryStatus.DELIVERED, 1)
            assert first.connections == 1

        try_hosts(ScriptedServer(script), check)

    @each(("script", "status"), [
        ({"mail": b"451 4.3.0 Later\r\n"}, DeliveryStatus.DEFERRED),
        ({"rcpt": b"450 4.2.0 Later\r\n"}, DeliveryStatus.DEFERRED),
        ({"rcpt": b"550 5.1.1 Unknown\r\n"}, DeliveryStatus.BOUNCED),
        ({"data": b"451 4.3.0 Later\r\n"}, DeliveryStatus.DEFERRED),
        ({"data": disconnect}, DeliveryStatus.DEFERRED),
        ({"dot": b"451 4.3.0 Later\r\n"}, DeliveryStatus.DEFERRED),
        ({"dot": disconnect}, DeliveryStatus.DEFERRED),
        ({"dot": silence}, DeliveryStatus.DEFERRED),
    ])  # fmt: skip
    def test_is_not_tried_after_a_refusal_or_after_data_began(self, script, status):
        async def check(transport, first, second) -> None:
            outcome = await transport.deliver(mail(), lease=LEASE)
            assert (outcome.status, second.connections) == (status, 0)

        try_hosts(ScriptedServer(script), check)

    def test_is_not_contacted_once_the_lease_is_lost(self):
        lease = StubLease()

        async def lose(visit) -> None:
            lease.valid = False
            raise Closed

        async def check(transport, first, second) -> None:
            with pytest.raises(LeaseLost):
                await transport.deliver(mail(), lease=lease)
            assert (first.connections, second.connections) == (1, 0)

        try_hosts(ScriptedServer({"banner": lose}), check)

    def test_is_tried_first_while_the_other_is_marked_down(self):
        async def check(transport, first, second) -> None:
            for _ in range(3):
                await transport.deliver(mail(), lease=LEASE)
                transport._destinations.close()
            assert (first.connections, second.connections) == (1, 3)

        try_hosts(ScriptedServer({"banner": disconnect}), check)

    @awaited
    async def test_a_domain_whose_hosts_are_all_down_is_deferred(self):
        async with ScriptedServer() as server:
            port = server.port
        async with transport_for(zones(FIRST, SECOND, THIRD), port) as transport:
            outcome = await transport.deliver(mail(), lease=LEASE)
        assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.NETWORK)

    @awaited
    async def test_all_hosts_together_have_one_deadline(self):
        async with ScriptedServer({"banner": drip}) as first, ScriptedServer(host=SECOND, port=first.port) as second:
            second.script = first.script
            slow = Timeouts(total=0.4)
            async with transport_for(zones(FIRST, SECOND), first.port, timeouts=slow) as transport:
                began = asyncio.get_running_loop().time()
                outcome = await transport.deliver(mail(), lease=LEASE)
                assert asyncio.get_running_loop().time() - began < 2
                assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.NETWORK)
                assert second.connections == 0

    @awaited
    async def test_a_host_without_an_address_is_skipped(self):
        async with ScriptedServer() as server:
            records = {"example.com": {"MX": ["1 gone.example.com.", "2 mx.example.com."]}}
            records["mx.example.com"] = {"A": [FIRST]}
            async with transport_for(records, server.port) as transport:
                assert (await transport.deliver(mail(), lease=LEASE)).status is DeliveryStatus.DELIVERED

    @awaited
    async def test_at_most_twenty_addresses_are_tried(self):
        async with ScriptedServer() as server:
            port = server.port
        records = zones(FIRST)
        records["mx0.example.com"] = {"A": [f"127.0.1.{number}" for number in range(1, 60)]}
        async with transport_for(records, port) as transport:
            hosts = await transport._mx.find("example.com")
            route = _Route(hosts, TlsMode.OPPORTUNISTIC, DomainTlsPolicy("example.com"))
            found = transport._mail_hosts(route, SourceChoice(), ())
            assert len([one async for one in found]) == 20


class TestConnections:
    @awaited
    async def test_domains_with_the_same_hosts_share_connections(self):
        async with ScriptedServer() as server:
            records = {
                "mx.example.com": {"A": [FIRST]},
                "one.example": {"MX": ["1 mx.example.com."]},
                "two.example": {"MX": ["5 mx.example.com."]},
            }
            async with transport_for(records, server.port) as transport:
                for domain in ("one.example", "two.example"):
                    assert (await transport.deliver(mail(domain), lease=LEASE)).status is DeliveryStatus.DELIVERED
            assert server.connections == 1

    @each("act", [silence, drip])
    @awaited
    async def test_a_silent_destination_does_not_slow_others(self, act):
        async with ScriptedServer({"banner": act}) as bad, ScriptedServer(host=SECOND, port=bad.port) as good:
            records = {"bad.example": {"A": [FIRST]}, "good.example": {"A": [SECOND]}}
            limits = DestinationLimits(max_connections=10, initial_connections=2)
            async with transport_for(records, bad.port, limits=limits, timeouts=Timeouts()) as transport:
                stuck = [asyncio.create_task(transport.deliver(mail("bad.example"), lease=LEASE)) for _ in range(20)]
                # Two wait for the host, the others are parked at once.
                while sum(task.done() for task in stuck) < 18:
                    await asyncio.sleep(0.01)
                for _ in range(10):
                    outcome = await transport.deliver(mail("good.example"), lease=LEASE)
                    assert outcome.status is DeliveryStatus.DELIVERED
                assert good.connections == 1
                done = [task.result().status for task in stuck if task.done()]
                assert done == [DeliveryStatus.PARKED] * 18
                for task in stuck:
                    task.cancel()
                await asyncio.gather(*stuck, return_exceptions=True)


class TestListedSources:
    """Source addresses that a block list has (docs/decisions/0350)."""

    SOURCES = (ip_address("127.0.0.3"), ip_address("127.0.0.4"))

    @awaited
    async def test_kept_connections_from_a_listed_address_take_no_new_message(self):
        listed: set[Any] = {self.SOURCES[1]}

        async def now_listed() -> set[Any]:
            return listed

        async with ScriptedServer() as server:
            options = {"sources": self.SOURCES, "listed": now_listed}
            async with transport_for(zones(FIRST), server.port, **options) as transport:
                for wanted in ({self.SOURCES[1]}, {self.SOURCES[0]}, {self.SOURCES[1]}):
                    listed = wanted
                    assert (await transport.deliver(mail(), lease=LEASE)).status is DeliveryStatus.DELIVERED
            # The third message takes the kept connection of the first.
            assert server.connections == 2

    def test_the_other_family_comes_first_and_a_listed_address_last(self):
        v4, other, v6 = ip_address("192.0.2.1"), ip_address("192.0.2.2"), ip_address("2001:db8::1")
        hosts = [ip_address("192.0.2.25"), ip_address("2001:db8::25")]
        choice = SourceChoice.among([v4, v6], listed={v4})
        assert choice.reachable(hosts) == hosts[::-1]
        assert choice.sources() == [(v4, v6)]
        choice = SourceChoice.among([v4, v6, other], listed={v4})
        assert choice.reachable(hosts) == hosts
        assert choice.sources() == [(other, v6)]
        choice = SourceChoice.among([v4, other], listed={v4, other})
        assert choice.reachable(hosts) == hosts[:1]
        assert choice.sources() == [(v4,), (other,)]
        assert SourceChoice.among([], listed={v4}).reachable(hosts) == hosts
        assert SourceChoice.among([], listed={v4}).sources() == [()]


class TestDns:
    def deliver(self, records: dict[str, Any], message: OutgoingMessage | None = None, **options: Any) -> Any:
        async def work() -> Any:
            async with transport_for(records, 9, **options) as transport:
                return await transport.deliver(message or mail(), lease=LEASE)

        return run(work())

    def test_a_null_mx_bounces_at_once(self):
        outcome = self.deliver({"example.com": {"MX": ["0 ."], "A": [FIRST]}})
        assert (outcome.status, outcome.reason) == (DeliveryStatus.BOUNCED, FailureReason.BAD_DOMAIN)
        assert outcome.reply.enhanced_code == "5.1.10"
        assert outcome.suppresses(SuppressOn.RECIPIENT_FAULT)

    @each(("last_reason", "last_reply_age", "is_bounced"), [
        ("", timedelta(), False),
        (FailureReason.BAD_DOMAIN_UNCONFIRMED, timedelta(minutes=4, seconds=59), False),
        (FailureReason.BAD_DOMAIN_UNCONFIRMED, timedelta(minutes=5), True),
        (FailureReason.DNS, timedelta(hours=1), False),
        (FailureReason.GREYLISTED, timedelta(hours=1), False),
    ])  # fmt: skip
    @each("records", [{}, {"example.com": {"TXT": ['"x"']}}, {"example.com": {"MX": ["1 gone.example.com."]}}])
    def test_a_missing_domain_bounces_when_confirmed_after_five_minutes(
        self, records, last_reason, last_reply_age, is_bounced
    ):
        outcome = self.deliver(records, mail(last_reason=last_reason, last_reply_age=last_reply_age))
        assert outcome.reply.enhanced_code == "5.1.2"
        assert outcome.suppresses(SuppressOn.RECIPIENT_FAULT) is is_bounced
        wanted = (DeliveryStatus.BOUNCED, FailureReason.BAD_DOMAIN) if is_bounced else (
            DeliveryStatus.DEFERRED, FailureReason.BAD_DOMAIN_UNCONFIRMED
        )  # fmt: skip
        assert (outcome.status, outcome.reason) == wanted

    @each("records", [
        {"example.com": SERVFAIL},
        {"example.com": {"MX": ["1 mx.example.com.", "2 gone.example.com."]}, "mx.example.com": SERVFAIL},
    ])  # fmt: skip
    def test_a_failed_lookup_is_deferred(self, records):
        repeated = mail(last_reason=FailureReason.BAD_DOMAIN_UNCONFIRMED, last_reply_age=timedelta(days=1))
        outcome = self.deliver(records, repeated)
        assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.DNS)

    def test_a_domain_whose_mail_host_is_this_server_bounces(self):
        outcome = self.deliver({"example.com": {"MX": ["1 me.example.net."]}})
        assert (outcome.status, outcome.reason) == (DeliveryStatus.BOUNCED, FailureReason.ROUTING_LOOP)
        assert not outcome.suppresses(SuppressOn.RECIPIENT_FAULT)

    @each("host", ["localhost.", "127.0.0.1.", "mx.example.com."])
    def test_private_hosts_are_never_contacted(self, host):
        records = {"example.com": {"MX": [f"1 {host}"]}, "mx.example.com": {"A": ["127.0.0.1"]}}
        outcome = self.deliver(records, guard=Guard())
        assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.TARGET_REFUSED)
        assert "127" not in outcome.reply.text, "the reply must not reveal resolved addresses"


class TestReceiver:
    ZONES = {
        "example.com": {"MX": ["10 backup.other.example.", "5 mx2.acme.example.", "5 mx1.acme.example."]},
        **{name: {"A": [FIRST]} for name in ("mx1.acme.example", "mx2.acme.example", "backup.other.example")},
    }

    def receiver_after(self, script: dict[str, Any], **options: Any) -> str:
        async def work() -> str:
            async with ScriptedServer(script) as server, transport_for(self.ZONES, server.port, **options) as transport:
                return (await transport.deliver(mail(), lease=LEASE)).receiver

        return run(work())

    @each("script", [{}, {"rcpt": b"550 5.1.1 Unknown\r\n"}, {"dot": b"451 4.3.0 Later\r\n"}, {"banner": silence}])
    def test_is_that_of_the_best_mail_host_after_any_attempt(self, script):
        assert self.receiver_after(script) == "acme.example"

    def test_has_its_key_in_the_table(self):
        table = ReceiverTable(
            [Receiver(key="acme", name="Acme", mx=("acme.example",))], default=Receiver(key="d", name="d")
        )
        assert self.receiver_after({}, receivers=table) == "acme"

    def test_is_not_known_without_a_mail_host(self):
        async def work() -> str:
            async with transport_for({"example.com": {"MX": ["0 ."]}}, 25) as transport:
                return (await transport.deliver(mail(), lease=LEASE)).receiver

        assert run(work()) == ""
