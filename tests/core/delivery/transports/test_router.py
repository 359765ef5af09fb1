"""The router of named transports: two real servers count the copies that they receive."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply, deferred, parked
from core.delivery.message.compose import File, Placement
from core.delivery.transports.circuit_breaker import NEVER, BreakerPolicy
from core.delivery.transports.destinations import DestinationLimits
from core.delivery.transports.interface import LeaseLost
from core.delivery.transports.relay import RelayTransport
from core.delivery.transports.router import TransportRouter, pinned_transport
from core.delivery.transports.smtp.smtp_url import RelayUrl
from core.delivery.transports.smtp.tls import TlsMode
from core.delivery.transports.transports_file import (
    FailoverKind,
    TransportRoute,
    Transports,
    TransportSpec,
    single_transport,
)
from tests.core.delivery.fault_proxy import FaultProxy
from tests.core.delivery.relaying import SHORT, FakeClock, awaited, run
from tests.core.delivery.scripted import ScriptedServer, disconnect, outgoing_message, reset, silence
from tests.rows import each

ROUTE = TransportRoute("default", ("own", "relay"))
MESSAGE = outgoing_message()


class Permit:
    """The permit of one message; assigned: the transports that were stored, in order.

    limited: transports whose daily limit is reached. lost_at: the transport whose assignment finds the lease lost.
    """

    def __init__(self, *, limited=(), lost_at=""):
        self.assigned, self.limited, self.lost_at, self.valid = [], limited, lost_at, True

    def is_valid(self):
        return self.valid

    async def assign(self, transport):
        if transport == self.lost_at:
            raise LeaseLost
        if transport in self.limited:
            return False
        self.assigned.append(transport)
        return True


def transports(*, route=ROUTE, kinds=None, **routes):
    names = dict.fromkeys(name for one in (route, *routes.values()) for name in one.use)
    specs = {name: TransportSpec(name=name, kind=(kinds or {}).get(name, "smtp")) for name in names}
    return Transports(specs, {"default": route, **routes}, {"default": ("default", *routes)})


def relay_to(port, *, login_policy=NEVER):
    url = RelayUrl("127.0.0.1", port, TlsMode.NONE)
    limits = DestinationLimits(max_connections=20, breaker_policy=NEVER)
    return RelayTransport(url, ehlo_name="sender.example", timeouts=SHORT, limits=limits, login_policy=login_policy)


class Relays:
    """A router with two relays, own and relay, each with a scripted server."""

    def __init__(self, own=None, relay=None, *, route=ROUTE, **options):
        self.scripts = {"own": own, "relay": relay}
        self.transports, self.clock = transports(route=route, **options), FakeClock()

    async def __aenter__(self):
        self.stack = AsyncExitStack()
        self.servers = {
            name: await self.stack.enter_async_context(ScriptedServer(script)) for name, script in self.scripts.items()
        }
        members = {name: relay_to(server.port) for name, server in self.servers.items()}
        self.members = members
        self.router = TransportRouter(self.transports, members, clock=self.clock)
        return self

    async def __aexit__(self, *error):
        for member in self.members.values():
            member.close()
        await self.stack.aclose()

    async def deliver(self, message=MESSAGE, permit=None, **fields):
        return await self.router.deliver(replace(message, **fields), lease=permit or Permit())

    def copies(self):
        return {name: len(server.messages) for name, server in self.servers.items()}


def deliver(own=None, relay=None, *, permit=None, route=ROUTE, **fields):
    """Deliver one message; return its outcome and the copies of both servers."""

    async def work():
        async with Relays(own, relay, route=route) as relays:
            outcome = await relays.deliver(permit=permit, **fields)
            return outcome, relays.copies()

    return run(work())


def test_the_first_transport_of_the_route_gets_the_message():
    permit = Permit()
    outcome, copies = deliver(permit=permit)
    assert (outcome.status, outcome.transport, outcome.failovers) == (DeliveryStatus.SENT, "own", ())
    assert copies == {"own": 1, "relay": 0}
    assert permit.assigned == ["own"]


def test_a_transport_that_is_assigned_already_is_not_stored_again():
    permit = Permit()
    outcome, _ = deliver(permit=permit, transport="own")
    assert outcome.transport == "own"
    assert permit.assigned == []


CERTAIN = {
    "no connection": {"banner": reset},
    "banner": {"banner": b"421 4.3.2 Down\r\n"},
    "ehlo": {"ehlo": b"421 4.3.2 Down\r\n", "helo": b"421 4.3.2 Down\r\n"},
    "demand of a login": {"mail": b"530 5.7.0 Authentication required\r\n"},
    "demand of TLS": {"mail": b"530 5.7.0 Must issue a STARTTLS command first\r\n"},
    "demand of Exchange": {"mail": b"530 5.7.57 Client not authenticated to send mail\r\n"},
    "5.7.57 with another code": {"mail": b"550 5.7.57 Client not authenticated to send mail\r\n"},
    "login revoked during the session": {"mail": b"535 5.7.8 Authentication credentials invalid\r\n"},
    "no SMTP": {"banner": b"HTTP/1.1 400 Bad Request\r\n"},
    "unexpected reply to DATA": {"data": b"250 2.0.0 Ok\r\n"},
    "rate at MAIL": {"mail": b"451 4.7.1 Too many messages, rate limit exceeded\r\n"},
    "rate at RCPT": {"rcpt": b"450 4.7.1 Rate limit exceeded, slow down\r\n"},
    "rate at the dot": {"dot": b"451 4.7.1 Rate limit exceeded, slow down\r\n"},
    "connection lost at MAIL": {"mail": disconnect},
    "connection lost at DATA": {"data": disconnect},
}


@each("script", CERTAIN.values())
def test_a_certain_failure_of_a_listed_kind_goes_to_the_next_transport_in_the_same_attempt(script):
    permit = Permit()
    outcome, copies = deliver(script, permit=permit)
    assert (outcome.status, outcome.transport) == (DeliveryStatus.SENT, "relay")
    assert copies["relay"] == 1
    assert permit.assigned == ["own", "relay"]
    (failover,) = outcome.failovers
    assert (failover.outcome.transport, failover.next_transport) == ("own", "relay")
    assert failover.outcome.status is DeliveryStatus.DEFERRED


ABOUT_THE_RECIPIENT = {
    "unknown user": ({"rcpt": b"550 5.1.1 No such user\r\n"}, DeliveryStatus.BOUNCED),
    "mailbox full": ({"rcpt": b"452 4.2.2 Mailbox full\r\n"}, DeliveryStatus.DEFERRED),
    "greylisted": ({"rcpt": b"451 4.7.1 Greylisted, try again later\r\n"}, DeliveryStatus.DEFERRED),
    "spam": ({"dot": b"554 5.7.1 Message contains spam\r\n"}, DeliveryStatus.BOUNCED),
    "policy": ({"dot": b"550 5.7.1 Rejected by policy\r\n"}, DeliveryStatus.BOUNCED),
    "size": ({"mail": b"552 5.3.4 Message too big\r\n"}, DeliveryStatus.BOUNCED),
    "relaying": ({"rcpt": b"550 5.7.1 Relaying denied\r\n"}, DeliveryStatus.BOUNCED),
    "blocklisted": ({"mail": b"554 5.7.1 Client host blocked using Spamhaus\r\n"}, DeliveryStatus.DEFERRED),
}


@each(("script", "status"), ABOUT_THE_RECIPIENT.values())
def test_a_refusal_of_the_recipient_or_the_content_never_fails_over(script, status):
    outcome, copies = deliver(script)
    assert (outcome.status, outcome.transport, outcome.failovers) == (status, "own", ())
    assert copies["relay"] == 0


def test_the_route_decides_which_kinds_fail_over():
    blocked = {"mail": b"554 5.7.1 Client host blocked using Spamhaus\r\n"}
    every = replace(ROUTE, failover_on=frozenset(FailoverKind))
    assert deliver(blocked, route=every)[0].transport == "relay"
    none = replace(ROUTE, failover_on=frozenset())
    outcome, copies = deliver({"banner": reset}, route=none)
    assert (outcome.status, outcome.transport, copies["relay"]) == (DeliveryStatus.DEFERRED, "own", 0)


UNCERTAIN = {
    "silence": {"dot": silence},
    "closed": {"dot": disconnect},
    "reset": {"dot": reset},
    "no code": {"dot": b"?\r\n"},
}


@each("script", UNCERTAIN.values())
def test_a_transport_that_may_have_the_message_keeps_it(script):
    outcome, copies = deliver(script)
    assert (outcome.reason, outcome.transport) == ("outcome_unknown", "own")
    assert copies == {"own": 1, "relay": 0}
    assert pinned_transport(None, outcome) == "own"


@awaited
async def test_a_transport_that_never_answers_the_last_byte_is_paused_and_keeps_its_messages():
    async with Relays({"dot": disconnect}) as relays:
        used = [(await relays.deliver(message_id=f"<{number}@example.org>")).transport for number in range(7)]
        (own, _), changes = relays.router.reports(), relays.router.take_changes()
        pinned = await relays.deliver(transport="own", is_pinned=True)
        copies = relays.copies()
    assert used == ["own"] * 5 + ["relay"] * 2
    assert (own.state, own.error) == ("paused", "The host closed the connection.")
    assert [(change.name, change.is_paused) for change in changes] == [("own", True)]
    assert (pinned.transport, pinned.reason) == ("own", "outcome_unknown")
    assert copies == {"own": 6, "relay": 2}


@each(("reply", "transport", "state"), [
    (b"530 5.7.0 Authentication required\r\n", "own", "open"),
    # The other transport may have TLS with the host.
    (b"530 5.7.0 Must issue a STARTTLS command first\r\n", "relay", "open"),
])  # fmt: skip
@awaited
async def test_a_recipients_host_that_demands_a_login_does_not_pause_a_direct_transport(reply, transport, state):
    async with Relays({"mail": reply}, kinds={"own": "direct"}) as relays:
        used = [(await relays.deliver()).transport for _ in range(4)]
        (own, _) = relays.router.reports()
    assert (used, own.state) == ([transport] * 4, state)


def test_a_pinned_message_goes_to_no_other_transport_whatever_its_state():
    permit = Permit(limited=("own",))
    outcome, copies = deliver({"banner": reset}, permit=permit, transport="own", is_pinned=True)
    assert (outcome.status, outcome.transport, copies["relay"]) == (DeliveryStatus.DEFERRED, "own", 0)
    # Neither does a certain refusal show the outcome of the first attempt.
    assert pinned_transport("own", outcome) == "own"


@awaited
async def test_a_message_pinned_to_a_removed_transport_waits_and_the_operator_is_told():
    async with Relays() as relays:
        outcome = await relays.deliver(transport="gone", is_pinned=True)
        trouble = relays.router.trouble
        relays.clock.now += 200
        later, copies = relays.router.trouble, relays.copies()
    assert (outcome.status, outcome.reason) == (DeliveryStatus.PARKED, "outcome_unknown")
    assert "'gone'" in trouble
    assert later is None
    assert copies == {"own": 0, "relay": 0}


@awaited
async def test_the_operator_is_told_of_a_removed_transport_also_without_a_file():
    async with ScriptedServer() as server:
        transport = relay_to(server.port)
        router = TransportRouter(single_transport("smtp"), {"default": transport})
        outcome = await router.deliver(replace(MESSAGE, transport="gone", is_pinned=True), lease=Permit())
        trouble, reports = router.trouble, router.reports()
        sent = await router.deliver(MESSAGE, lease=Permit())
        transport.close()
        (report,) = reports
    assert (outcome.status, sent.status) == (DeliveryStatus.PARKED, DeliveryStatus.SENT)
    assert "'gone'" in trouble
    assert report.state == "open"


@awaited
async def test_a_single_transport_that_demands_a_login_is_reported_as_paused():
    async with ScriptedServer({"mail": b"530 5.7.0 Authentication required\r\n"}) as server:
        transport = relay_to(server.port, login_policy=BreakerPolicy(failure_threshold=1))
        router = TransportRouter(single_transport("smtp"), {"default": transport})
        await router.deliver(MESSAGE, lease=Permit())
        (report,) = router.reports()
        transport.close()
    assert report.state == "paused"
    assert "Authentication required" in report.error


def test_each_transport_is_tried_at_most_once_in_an_attempt():
    outcome, copies = deliver({"banner": reset}, {"mail": b"451 4.7.1 Rate limit exceeded\r\n"})
    assert (outcome.status, outcome.reason, outcome.transport) == (DeliveryStatus.DEFERRED, "rate_limited", "relay")
    assert [failover.next_transport for failover in outcome.failovers] == ["relay"]
    assert copies == {"own": 0, "relay": 0}


@awaited
async def test_a_lost_lease_sends_nothing_by_the_next_transport():
    async with Relays({"banner": reset}) as relays:
        with pytest.raises(LeaseLost):
            await relays.deliver(permit=Permit(lost_at="relay"))
        assert relays.copies() == {"own": 0, "relay": 0}


@awaited
async def test_the_daily_limit_of_one_transport_leads_to_the_next_and_of_all_defers():
    async with Relays() as relays:
        outcome = await relays.deliver(permit=Permit(limited=("own",)))
        assert (outcome.status, outcome.transport, outcome.failovers) == (DeliveryStatus.SENT, "relay", ())
        for name in ("own", "relay"):
            relays.router.set_exhausted(name, seconds=3600)
        outcome = await relays.deliver()
        relays.clock.now += 61
        waiting, later = outcome, await relays.deliver()
    assert (waiting.status, waiting.reason) == (DeliveryStatus.DEFERRED, "daily_limit")
    assert later.transport == "own"


@awaited
async def test_a_message_that_waits_names_the_daily_limit_and_the_paused_transport():
    async with Relays(None, {"mail": b"530 5.7.0 Authentication required\r\n"}) as relays:
        relays.router.set_exhausted("own", seconds=3600)
        for _ in range(3):
            await relays.deliver()
        outcome = await relays.deliver()
    assert outcome.status is DeliveryStatus.PARKED
    assert "own has reached its daily limit; relay is paused (530 5.7.0 Auth" in outcome.reply.text


@awaited
async def test_a_drained_transport_gets_nothing_and_its_sessions_end():
    async with Relays() as relays:
        await relays.deliver()
        for transport in relays.router.set_draining({"own"}):
            transport.end_sessions()
        await asyncio.sleep(0.05)
        drained = await relays.deliver()
        pinned = await relays.deliver(transport="own", is_pinned=True)
        state = relays.router.reports()[0].state
        said = relays.servers["own"].said("QUIT")
        relays.router.set_draining(set())
        resumed = await relays.deliver()
    assert drained.transport == "relay"
    assert pinned.status is DeliveryStatus.PARKED
    assert (state, said) == ("draining", ["QUIT"])
    assert resumed.transport == "own"


@awaited
async def test_three_refused_logins_pause_a_transport_which_returns_without_flapping():
    async with Relays({"mail": [b"530 5.7.0 Authentication required\r\n"] * 4 + [b"250 2.1.0 Ok\r\n"]}) as relays:
        used = [(await relays.deliver()).transport for _ in range(4)]
        attempts = [len(relays.servers["own"].said("MAIL"))]
        changes = relays.router.take_changes()
        states = [relays.router.reports()[0].state]
        times = []
        for _ in range(600):
            relays.clock.now += 1
            outcome = await relays.deliver()
            if len(relays.servers["own"].said("MAIL")) > attempts[-1]:
                attempts.append(len(relays.servers["own"].said("MAIL")))
                times.append((relays.clock.now - 1000, outcome.transport))
            if relays.router.reports()[0].state == "open":
                break
        states.append(relays.router.reports()[0].state)
        closing, after = relays.router.take_changes(), await relays.deliver()
    assert used == ["relay"] * 4
    assert [(change.name, change.is_paused) for change in changes] == [("own", True)]
    assert states == ["paused", "open"]
    # A probe after 30 s fails, the next one after 60 s; then each succeeds, and the third of them closes the breaker.
    assert times == [(30.0, "relay"), (90.0, "own"), (120.0, "own"), (150.0, "own")]
    assert [(change.name, change.is_paused) for change in closing] == [("own", False)]
    assert after.transport == "own"


class Network:
    """The network of several transports, which is down or not."""

    trouble, is_down = None, False

    async def deliver(self, message, *, lease):
        if self.is_down:
            return deferred(FailureReason.NETWORK, "Could not connect.")
        return DeliveryOutcome(DeliveryStatus.SENT, Reply(250, "Ok"))


class Blip:
    """A router with two transports, both paused by an outage of the network; one message a second and route."""

    def __init__(self, **routes):
        self.networks, self.clock, self.number = {"own": Network(), "relay": Network()}, FakeClock(0.0), 0
        self.router = TransportRouter(transports(**routes), self.networks, clock=self.clock)

    async def second(self, route="default"):
        self.clock.now += 1
        self.number += 1
        message = replace(MESSAGE, route=route, message_id=f"<{self.number}@example.org>")
        return (await self.router.deliver(message, lease=Permit())).transport

    async def begin(self, *, seconds=12, names=ROUTE.use):
        for name in names:
            self.networks[name].is_down = True
        for _ in range(seconds):
            await self.second()
        for name in names:
            self.networks[name].is_down = False

    def states(self):
        return [report.state for report in self.router.reports()]


@awaited
async def test_after_an_outage_of_all_transports_the_first_that_answers_takes_everything():
    blip = Blip()
    await blip.begin()
    assert blip.states() == ["paused", "paused"]
    used = [await blip.second() for _ in range(60)]
    trouble, states = blip.router.trouble, blip.states()
    # The breakers opened after 5 s, and a probe is due 30 s later.
    assert used == [""] * 22 + ["own"] * 38
    assert (states, trouble) == (["probing", "paused"], None)
    for _ in range(60):
        await blip.second()
    assert blip.states()[0] == "open"


@awaited
async def test_one_that_takes_everything_is_paused_again_when_it_fails():
    blip = Blip()
    await blip.begin()
    while blip.states()[0] != "probing":
        await blip.second()
    assert [await blip.second() for _ in range(3)] == ["own"] * 3
    blip.networks["own"].is_down = True
    used = [await blip.second() for _ in range(6)]
    # relay is not probed before own fails: its probe is the fallback of the first failure.
    assert used[-1] == "relay"
    assert blip.states()[1] == "probing"


@awaited
async def test_a_transport_that_recovers_takes_only_the_routes_that_have_no_other():
    blip = Blip(bulk=TransportRoute("bulk", ("own",)))
    await blip.begin(names=("own",))
    while blip.states()[0] != "probing":
        await blip.second("bulk")
    used = [(await blip.second(), await blip.second("bulk")) for _ in range(10)]
    assert used == [("relay", "own")] * 10


class Answers:
    """A transport with the given outcomes, such as those of a provider, whose replies have no code."""

    trouble = None

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)

    async def deliver(self, message, *, lease):
        return self.outcomes.pop(0)


REFUSED_LOGIN = deferred(FailureReason.LOGIN_REFUSED, "HTTP 401")
ANSWERS = {
    "acceptance without a code": DeliveryOutcome(DeliveryStatus.SENT, Reply(0, "Accepted by the provider.")),
    "refusal of a recipient": DeliveryOutcome(
        DeliveryStatus.BOUNCED, Reply(550, "5.1.1 Unknown"), FailureReason.UNKNOWN_USER, is_recipient_fault=True
    ),
    "greylisting": DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(451, "4.7.1 Later"), FailureReason.GREYLISTED),
}


@each("answer", ANSWERS.values())
@awaited
async def test_an_answer_between_refused_logins_starts_the_count_again(answer):
    own = Answers(REFUSED_LOGIN, REFUSED_LOGIN, answer, REFUSED_LOGIN, REFUSED_LOGIN, REFUSED_LOGIN)
    router = TransportRouter(
        transports(route=TransportRoute("default", ("own",)), kinds={"own": "anymail"}), {"own": own}
    )
    states = []
    for _ in range(6):
        await router.deliver(MESSAGE, lease=Permit())
        states.append(router.reports()[0].state)
    assert states == ["open"] * 5 + ["paused"]


@each("is_exhausted", [False, True])
@awaited
async def test_a_message_that_every_transport_parks_is_parked_and_pauses_nothing(is_exhausted):
    """As of direct transports that have paused the same mail host."""
    members = {
        name: Answers(parked(FailureReason.DESTINATION_SHUT, f"{name}: the host is down.")) for name in ROUTE.use
    }
    router = TransportRouter(transports(), members)
    if is_exhausted:
        router.set_exhausted("relay", seconds=3600)
    outcome = await router.deliver(MESSAGE, lease=Permit())
    states = [one.state for one in router.reports()]
    last = "own" if is_exhausted else "relay"
    assert (outcome.status, outcome.transport, outcome.failovers) == (DeliveryStatus.PARKED, last, ())
    assert outcome.reply.text == f"{last}: the host is down."
    assert states == ["open", "open"]


def exceeding():
    outcome = parked(FailureReason.DESTINATION_FULL, "New address.", waits_for="receiver_pace")
    return replace(outcome, pair=7, exceeds_day=True)


@awaited
async def test_a_message_that_exceeds_the_day_of_a_new_address_takes_the_next_transport():
    sent = DeliveryOutcome(DeliveryStatus.SENT, Reply(250, "Ok"))
    permit, route = Permit(), TransportRoute("default", ("own", "relay"), frozenset())
    router = TransportRouter(transports(route=route), {"own": Answers(exceeding()), "relay": Answers(sent)})
    outcome = await router.deliver(MESSAGE, lease=permit)
    assert (outcome.status, outcome.transport, outcome.failovers) == (DeliveryStatus.SENT, "relay", ())
    assert permit.assigned == ["own", "relay"]


@awaited
async def test_a_message_that_exceeds_the_day_waits_for_the_pair_only_without_another_transport():
    alone = TransportRouter(transports(route=TransportRoute("default", ("own",))), {"own": Answers(exceeding())})
    outcome = await alone.deliver(MESSAGE, lease=Permit())
    assert (outcome.pair, outcome.waits_for) == (7, "receiver_pace")
    drained = TransportRouter(transports(), {"own": Answers(exceeding()), "relay": Answers()})
    drained.set_draining(["relay"])
    outcome = await drained.deliver(MESSAGE, lease=Permit())
    # It comes back soon, since the other transport may work again before midnight.
    assert (outcome.status, outcome.pair, outcome.waits_for) == (DeliveryStatus.PARKED, 0, "transport")


@awaited
async def test_one_of_many_messages_probes_a_paused_transport():
    class SlowPermit(Permit):
        async def assign(self, transport):
            await asyncio.sleep(0.01)
            return await super().assign(transport)

    async with Relays({"mail": b"530 5.7.0 Authentication required\r\n"}) as relays:
        for _ in range(3):
            await relays.deliver()
        relays.clock.now += 31
        # Claimed while the transport was paused, and delivered when a probe is due.
        deliveries = [relays.deliver(permit=SlowPermit(), transport="relay") for _ in range(10)]
        outcomes = await asyncio.gather(*deliveries)
        assert [outcome.transport for outcome in outcomes] == ["relay"] * 10
        assert len(relays.servers["own"].said("MAIL")) == 4


@awaited
async def test_a_route_without_a_working_transport_is_trouble_and_its_messages_wait():
    async with Relays({"banner": reset}, {"mail": b"530 5.7.0 Authentication required\r\n"}) as relays:
        numbers = iter(range(100))
        for _ in range(5):
            await relays.deliver(message_id=f"<{next(numbers)}@example.org>")
        trouble, outcome = relays.router.trouble, await relays.deliver()
        states = [one.state for one in relays.router.reports()]
    assert states == ["paused", "paused"]
    assert "Authentication required" in trouble
    assert outcome.status is DeliveryStatus.PARKED


@awaited
async def test_one_unreachable_transport_is_no_trouble():
    async with Relays({"banner": reset}) as relays:
        for number in range(6):
            await relays.deliver(message_id=f"<{number}@example.org>")
        assert relays.router.trouble is None
        assert [one.state for one in relays.router.reports()] == ["paused", "open"]


@awaited
async def test_providers_are_skipped_for_messages_that_must_not_change():
    whole = (File("a", "multipart/signed", b"x", placement=Placement.WHOLE),)
    async with Relays(kinds={"own": "anymail"}) as relays:
        signed, other = await relays.deliver(files=whole), await relays.deliver()
    assert (signed.transport, other.transport) == ("relay", "own")


@awaited
async def test_a_message_that_must_not_change_fails_if_its_route_has_only_providers():
    whole = (File("a", "multipart/signed", b"x", placement=Placement.WHOLE),)
    async with Relays(kinds={"own": "anymail", "relay": "anymail"}) as relays:
        outcome, copies = await relays.deliver(files=whole), relays.copies()
    assert (outcome.status, outcome.reason) == (DeliveryStatus.FAILED, "provider_refused")
    assert copies == {"own": 0, "relay": 0}


async def _send_until_settled(relays, proxy):
    """Deliver one message like a worker: by its pin, until an outcome is final; return the transports used."""
    pin, used = None, []
    for _ in range(4):
        permit = Permit()
        outcome = await relays.deliver(permit=permit, transport=pin or "", is_pinned=bool(pin))
        used.append(outcome.transport)
        pin = pinned_transport(pin, outcome)
        if outcome.status is not DeliveryStatus.DEFERRED:
            return used
        proxy.heal()
    raise AssertionError(f"not sent: {used}")


async def _lose(direction, place, *, is_silent):
    async with (
        ScriptedServer() as first,
        FaultProxy(first.port, is_silent=is_silent, **{direction: place}) as proxy,
        ScriptedServer() as second,
    ):
        members = {"own": relay_to(proxy.port), "relay": relay_to(second.port)}
        relays = Relays()
        relays.router, relays.servers = TransportRouter(transports(), members), {"own": first, "relay": second}
        try:
            await _send_until_settled(relays, proxy)
            return relays.copies(), proxy.passed_replies
        finally:
            for member in members.values():
                member.close()


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.long)])
@each("direction", ["replies", "commands"])
def test_a_dialogue_that_is_cut_at_any_byte_never_leaves_copies_on_two_transports(direction, step):
    async def work():
        _, replies = await _lose("replies", None, is_silent=False)
        # The commands with the message are longer; most of them lie within the last block.
        places = range(0, replies + 1, step) if direction == "replies" else range(0, 900, 5 * step)
        both, none, seconds = [], [], 0
        for place in places:
            copies, _ = await _lose(direction, place, is_silent=False)
            both += [place] if all(copies.values()) else []
            none += [place] if not any(copies.values()) else []
            seconds += copies["own"] > 1
        return both, none, seconds, replies

    async def limited():
        async with asyncio.timeout(120):
            return await work()

    both, none, seconds, replies = asyncio.run(limited())
    assert both == []
    assert none == []
    if direction == "replies":
        # Those whose reply to the final dot was lost: one second copy each, on the same transport.
        assert 1 <= seconds < 60 < replies


@each("place", [0, 30, 80, 130, 200, 240])
@awaited
async def test_a_connection_that_falls_silent_never_leaves_copies_on_two_transports(place):
    copies, _ = await _lose("replies", place, is_silent=True)
    assert sorted(map(bool, copies.values())) == [False, True]
