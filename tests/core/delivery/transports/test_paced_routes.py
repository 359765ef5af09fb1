"""Routes with `paced` in failoverOn: what waited too long for a receiver takes the next transport (0370)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply, parked
from core.delivery.transports.router import TransportRouter
from core.delivery.transports.transports_file import FailoverKind, TransportRoute
from tests.core.delivery.relaying import awaited
from tests.core.delivery.transports.test_router import MESSAGE, Permit, transports
from tests.rows import each

ROUTE = TransportRoute("default", ("own", "relay"), frozenset({FailoverKind.PACED}), 300)
LIMIT = timedelta(seconds=300)
FULL = FailureReason.DESTINATION_FULL
SENT, PARKED, DEFERRED = DeliveryStatus.SENT, DeliveryStatus.PARKED, DeliveryStatus.DEFERRED
ACCEPTED = DeliveryOutcome(SENT, Reply(250, "Ok"))


def waiting(reason=FailureReason.RATE_LIMITED, *, pair=7):
    return replace(parked(reason, "The receiver asked for less email.", waits_for="receiver_pace"), pair=pair)


class StubTransport:
    """A transport with one outcome for all messages; counts them."""

    trouble = None

    def __init__(self, outcome=ACCEPTED):
        self.outcome, self.count = outcome, 0

    async def deliver(self, message, *, lease):
        self.count += 1
        return self.outcome


async def deliver(own, relay=None, *, route=ROUTE, permit=None, **fields):
    """Deliver a message by a route whose first transport is direct; return its outcome and what the second one got."""
    second = relay or StubTransport()
    kinds = {"own": "direct", "other": "direct"}
    members = {"own": StubTransport(own), route.use[-1]: second}
    router = TransportRouter(transports(route=route, kinds=kinds), members)
    outcome = await router.deliver(replace(MESSAGE, **fields), lease=permit or Permit())
    return outcome, second.count


@each("reason", [FailureReason.RATE_LIMITED, FailureReason.REPUTATION, FULL, FailureReason.BLOCKLISTED])
@awaited
async def test_a_message_waits_for_the_pace_until_its_time_is_over(reason):
    permit = Permit()
    first, count = await deliver(waiting(reason), permit=permit)
    assert (first.status, first.pair, first.paced_at_most, count) == (PARKED, 7, LIMIT, 0)
    assert permit.assigned == ["own"]
    later, count = await deliver(waiting(reason), permit=permit, has_waited=True)
    assert (later.status, later.transport, later.failovers, count) == (SENT, "relay", (), 1)
    assert permit.assigned == ["own", "own", "relay"]


@awaited
async def test_a_wait_is_no_wait_for_the_rate_limit_of_the_route():
    route = replace(ROUTE, failover_on=frozenset(FailoverKind))
    first, _ = await deliver(waiting(), route=route)
    assert (first.status, first.paced_at_most) == (PARKED, LIMIT)
    # Refusals go on at once, as they do without it.
    refused = DeliveryOutcome(DEFERRED, Reply(421, "4.7.28 Too fast"), FailureReason.RATE_LIMITED)
    assert (await deliver(refused, route=route))[0].transport == "relay"
    # As do messages for an address that is on a block list.
    assert (await deliver(waiting(FailureReason.BLOCKLISTED), route=route))[0].transport == "relay"


@awaited
async def test_a_route_without_it_goes_on_for_its_other_reasons():
    route = replace(ROUTE, failover_on=frozenset({FailoverKind.RATE_LIMITED}), paced_after_seconds=None)
    assert (await deliver(waiting(), route=route))[0].transport == "relay"
    for has_waited in (False, True):
        outcome, count = await deliver(waiting(FULL), route=route, has_waited=has_waited)
        assert (outcome.status, outcome.paced_at_most, count) == (PARKED, timedelta(0), 0)


@awaited
async def test_a_message_that_another_host_may_have_never_goes_on():
    outcome, count = await deliver(waiting(), has_waited=True, transport="own", is_pinned=True)
    assert (outcome.status, outcome.pair, outcome.paced_at_most, count) == (PARKED, 7, timedelta(0), 0)


@awaited
async def test_a_message_that_no_transport_takes_waits_on():
    busy = StubTransport(parked(FULL, "All connections are in use.", retry_after=timedelta(seconds=9)))
    outcome, count = await deliver(waiting(), busy, has_waited=True)
    assert (outcome.status, outcome.pair, outcome.transport, count) == (PARKED, 0, "relay", 1)
    limited, count = await deliver(waiting(), permit=Permit(limited=("relay",)), has_waited=True)
    assert (limited.pair, limited.paced_at_most, count) == (7, LIMIT, 0)


@awaited
async def test_the_last_transport_of_a_route_has_no_limit():
    route = replace(ROUTE, use=("own", "other"))
    last = StubTransport(waiting(pair=8))
    outcome, _ = await deliver(waiting(), last, route=route, has_waited=True)
    assert (outcome.pair, outcome.paced_at_most) == (8, timedelta(0))


@pytest.mark.parametrize("reason", [FailureReason.NETWORK, FailureReason.TLS])
@awaited
async def test_failures_do_not_go_on_for_it(reason):
    failed = DeliveryOutcome(DEFERRED, Reply(0, "Failed."), reason)
    outcome, count = await deliver(failed, has_waited=True)
    assert (outcome.status, outcome.transport, count) == (DEFERRED, "own", 0)
