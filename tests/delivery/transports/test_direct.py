"""Mail to the hosts of a domain: the right one, in order, and no other after the message went out."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from delivery.bounces.reasons import Reason
from delivery.bounces.replies import DeliveryStatus, SuppressOn
from delivery.message.delivery_request import FIRST_ATTEMPT, DeliveryRequest, Envelope, History
from delivery.transports.destinations import Limits
from delivery.transports.direct import DirectTransport
from delivery.transports.smtp.mx import Routes
from delivery.transports.smtp.server import Timeouts
from lib.address_guard import Guard
from lib.resolver import Resolver
from tests.delivery.relaying import SHORT, run
from tests.delivery.scripted import HeldLease, ScriptedServer, disconnect, drip, letter, silence
from tests.lib.nameserver import SERVFAIL, NameServer

LEASE = HeldLease()
# Hosts on one port of several loopback addresses.
FIRST, SECOND, THIRD = "127.0.0.1", "127.0.0.2", "127.0.0.3"


def _script_id(value: object) -> str:
    """Name a case the same way in every process, whatever the addresses of its functions."""
    return re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", str(value))


def mail(domain: str = "example.com", history: History = FIRST_ATTEMPT) -> DeliveryRequest:
    return DeliveryRequest(Envelope("b@example.org", f"ada@{domain}"), letter(), history=history)


def zones(*addresses: str) -> dict[str, Any]:
    """example.com with a host at each address, the first one the best."""
    hosts = {f"mx{number}.example.com": {"A": [address]} for number, address in enumerate(addresses)}
    return {"example.com": {"MX": [f"{number} {host}." for number, host in enumerate(hosts)]}, **hosts}


@asynccontextmanager
async def transport_for(
    records: dict[str, Any], port: int, *, guard: Guard | None = None, **options: Any
) -> AsyncIterator[DirectTransport]:
    with NameServer(records) as server:
        resolver = Resolver([server.address], lifetime_seconds=0.5)
        routes = Routes(resolver, guard or Guard(allow_private=True), own_names=["me.example.net"])
        transport = DirectTransport(
            routes, ehlo_name="me.example.net", port=port, **{"timeouts": SHORT, "limits": Limits(), **options}
        )
        try:
            yield transport
        finally:
            transport.close()


def try_hosts(
    first: ScriptedServer, check: Callable[[DirectTransport, ScriptedServer, ScriptedServer], Awaitable[None]]
) -> None:
    """Let a check deliver to example.com, whose best host is `first` and whose second one is willing."""

    async def work() -> None:
        async with (
            first,
            ScriptedServer(host=SECOND, port=first.port) as second,
            transport_for(zones(FIRST, SECOND), first.port) as transport,
        ):
            await check(transport, first, second)

    run(work())


class TestTheNextHost:
    @pytest.mark.parametrize(
        "script",
        [
            {"banner": b"421 4.3.2 Busy\r\n"},
            {"banner": b"554 5.7.1 Go away\r\n"},
            {"banner": disconnect},
            {"banner": silence},
            {"banner": b"no smtp\r\n"},
            {"ehlo": b"421 Busy\r\n"},
            {"ehlo": disconnect},
            {"mail": disconnect},
            {"rcpt": disconnect},
        ],
        ids=_script_id,
    )
    def test_is_tried_when_the_first_cannot_be_talked_to(self, script):
        async def check(transport, first, second) -> None:
            outcome = await transport.deliver(mail(), lease=LEASE)
            assert (outcome.verdict, len(second.messages)) == (DeliveryStatus.DELIVERED, 1)
            assert first.connections == 1

        try_hosts(ScriptedServer(script), check)

    @pytest.mark.parametrize(
        ("script", "verdict"),
        [
            ({"mail": b"451 4.3.0 Later\r\n"}, DeliveryStatus.DEFERRED),
            ({"rcpt": b"450 4.2.0 Later\r\n"}, DeliveryStatus.DEFERRED),
            ({"rcpt": b"550 5.1.1 Unknown\r\n"}, DeliveryStatus.BOUNCED),
            ({"data": b"451 4.3.0 Later\r\n"}, DeliveryStatus.DEFERRED),
            ({"data": disconnect}, DeliveryStatus.DEFERRED),
            ({"dot": b"451 4.3.0 Later\r\n"}, DeliveryStatus.DEFERRED),
            ({"dot": disconnect}, DeliveryStatus.DEFERRED),
            ({"dot": silence}, DeliveryStatus.DEFERRED),
        ],
        ids=_script_id,
    )
    def test_is_not_tried_once_the_first_has_spoken_or_data_began(self, script, verdict):
        async def check(transport, first, second) -> None:
            outcome = await transport.deliver(mail(), lease=LEASE)
            assert (outcome.verdict, second.connections) == (verdict, 0)

        try_hosts(ScriptedServer(script), check)

    def test_is_asked_first_for_a_while_after_that(self):
        async def check(transport, first, second) -> None:
            for _ in range(3):
                await transport.deliver(mail(), lease=LEASE)
                transport._lanes.close()
            assert (first.connections, second.connections) == (1, 3)

        try_hosts(ScriptedServer({"banner": disconnect}), check)

    def test_all_hosts_down_is_no_bounce(self):
        async def work() -> None:
            async with ScriptedServer() as server:
                port = server.port
            async with transport_for(zones(FIRST, SECOND, THIRD), port) as transport:
                outcome = await transport.deliver(mail(), lease=LEASE)
            assert (outcome.verdict, outcome.reason) == (DeliveryStatus.DEFERRED, Reason.NETWORK)

        run(work())

    def test_all_hosts_together_have_one_deadline(self):
        async def work() -> None:
            async with (
                ScriptedServer({"banner": drip}) as first,
                ScriptedServer(host=SECOND, port=first.port) as second,
            ):
                second.script = first.script
                slow = Timeouts(whole=0.4)
                async with transport_for(zones(FIRST, SECOND), first.port, timeouts=slow) as transport:
                    began = asyncio.get_running_loop().time()
                    outcome = await transport.deliver(mail(), lease=LEASE)
                    assert asyncio.get_running_loop().time() - began < 2
                    assert (outcome.verdict, outcome.reason) == (DeliveryStatus.DEFERRED, Reason.NETWORK)
                    assert second.connections == 0

        run(work())

    def test_a_host_without_an_address_is_passed_over(self):
        async def work() -> None:
            async with ScriptedServer() as server:
                records = {"example.com": {"MX": ["1 gone.example.com.", "2 mx.example.com."]}}
                records["mx.example.com"] = {"A": [FIRST]}
                async with transport_for(records, server.port) as transport:
                    assert (await transport.deliver(mail(), lease=LEASE)).verdict is DeliveryStatus.DELIVERED

        run(work())

    def test_no_more_than_twenty_addresses_are_called(self):
        async def work() -> None:
            async with ScriptedServer() as server:
                port = server.port
            records = zones(FIRST)
            records["mx0.example.com"] = {"A": [f"127.0.1.{number}" for number in range(1, 60)]}
            async with transport_for(records, port) as transport:
                route = await transport._routes.find("example.com")
                assert len([one async for one in transport._servers(route)]) == 20

        run(work())


class TestConnections:
    def test_domains_with_the_same_hosts_share_them(self):
        async def work() -> None:
            async with ScriptedServer() as server:
                records = {
                    "mx.example.com": {"A": [FIRST]},
                    "one.example": {"MX": ["1 mx.example.com."]},
                    "two.example": {"MX": ["5 mx.example.com."]},
                }
                async with transport_for(records, server.port) as transport:
                    for domain in ("one.example", "two.example"):
                        assert (await transport.deliver(mail(domain), lease=LEASE)).verdict is DeliveryStatus.DELIVERED
                assert server.connections == 1

        run(work())

    @pytest.mark.parametrize("act", [silence, drip])
    def test_a_silent_destination_slows_nobody_else(self, act):
        async def work() -> None:
            async with ScriptedServer({"banner": act}) as bad, ScriptedServer(host=SECOND, port=bad.port) as good:
                records = {
                    "bad.example": {"A": [FIRST]},
                    "good.example": {"A": [SECOND]},
                }
                limits = Limits(connections=10, first=2)
                async with transport_for(records, bad.port, limits=limits, timeouts=Timeouts()) as transport:
                    stuck = [
                        asyncio.create_task(transport.deliver(mail("bad.example"), lease=LEASE)) for _ in range(20)
                    ]
                    await asyncio.sleep(0.1)
                    done = [task.result().verdict for task in stuck if task.done()]
                    assert done == [DeliveryStatus.PARKED] * 18, "two wait for it, the others are put aside at once"
                    began = asyncio.get_running_loop().time()
                    for _ in range(10):
                        outcome = await transport.deliver(mail("good.example"), lease=LEASE)
                        assert outcome.verdict is DeliveryStatus.DELIVERED
                    assert asyncio.get_running_loop().time() - began < 1
                    assert good.connections == 1
                    for task in stuck:
                        task.cancel()
                    await asyncio.gather(*stuck, return_exceptions=True)

        run(work())


class TestTheDns:
    def deliver(self, records: dict[str, Any], domain: str = "example.com", **options: Any) -> Any:
        history = options.pop("history", FIRST_ATTEMPT)

        async def work() -> Any:
            async with transport_for(records, 9, **options) as transport:
                return await transport.deliver(mail(domain, history), lease=LEASE)

        return run(work())

    def test_a_null_mx_bounces_at_once(self):
        outcome = self.deliver({"example.com": {"MX": ["0 ."], "A": [FIRST]}})
        assert (outcome.verdict, outcome.reason) == (DeliveryStatus.BOUNCED, Reason.BAD_DOMAIN)
        assert outcome.reply.enhanced_code == "5.1.10"
        assert outcome.suppresses(SuppressOn.RECIPIENT_FAULT)

    @pytest.mark.parametrize(
        ("history", "is_bounced"),
        [
            (FIRST_ATTEMPT, False),
            (History(2, Reason.BAD_DOMAIN_UNCONFIRMED, timedelta(minutes=4, seconds=59)), False),
            (History(2, Reason.BAD_DOMAIN_UNCONFIRMED, timedelta(minutes=5)), True),
            (History(2, Reason.DNS, timedelta(hours=1)), False),
            (History(3, Reason.GREYLISTED, timedelta(hours=1)), False),
        ],
    )
    @pytest.mark.parametrize(
        "records",
        [{}, {"example.com": {"TXT": ['"x"']}}, {"example.com": {"MX": ["1 gone.example.com."]}}],
        ids=["NXDOMAIN", "no address", "hosts that are not there"],
    )
    def test_a_domain_that_is_not_there_bounces_when_asked_again_after_five_minutes(self, records, history, is_bounced):
        outcome = self.deliver(records, history=history)
        assert outcome.reply.enhanced_code == "5.1.2"
        assert outcome.suppresses(SuppressOn.RECIPIENT_FAULT) is is_bounced
        wanted = (DeliveryStatus.BOUNCED, Reason.BAD_DOMAIN) if is_bounced else (
            DeliveryStatus.DEFERRED, Reason.BAD_DOMAIN_UNCONFIRMED
        )  # fmt: skip
        assert (outcome.verdict, outcome.reason) == wanted

    @pytest.mark.parametrize(
        "records",
        [
            {"example.com": SERVFAIL},
            {"example.com": {"MX": ["1 mx.example.com.", "2 gone.example.com."]}, "mx.example.com": SERVFAIL},
        ],
        ids=["MX", "addresses"],
    )
    def test_trouble_is_tried_again(self, records):
        outcome = self.deliver(records, history=History(9, Reason.BAD_DOMAIN_UNCONFIRMED, timedelta(days=1)))
        assert (outcome.verdict, outcome.reason) == (DeliveryStatus.DEFERRED, Reason.DNS)

    def test_mail_for_ourselves_does_not_go_round(self):
        outcome = self.deliver({"example.com": {"MX": ["1 me.example.net."]}})
        assert (outcome.verdict, outcome.reason) == (DeliveryStatus.BOUNCED, Reason.ROUTING_LOOP)
        assert not outcome.suppresses(SuppressOn.RECIPIENT_FAULT)

    @pytest.mark.parametrize("host", ["localhost.", "127.0.0.1.", "mx.example.com."])
    def test_hosts_inside_are_never_called(self, host):
        records = {"example.com": {"MX": [f"1 {host}"]}, "mx.example.com": {"A": ["127.0.0.1"]}}
        outcome = self.deliver(records, guard=Guard())
        assert (outcome.verdict, outcome.reason) == (DeliveryStatus.DEFERRED, Reason.TARGET_REFUSED)
        assert "127" not in outcome.reply.text, "what a name resolved to is not told to strangers"
