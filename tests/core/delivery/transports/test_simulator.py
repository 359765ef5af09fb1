"""Simulated recipients."""

import pytest

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, SuppressOn
from core.delivery.transports.interface import LeaseCheck, LeaseLost
from core.delivery.transports.relay import inbox_transport
from core.delivery.transports.simulator import SimulatorTransport
from tests.core.delivery.relaying import awaited, relay, run
from tests.core.delivery.scripted import ScriptedServer, StubLease, outgoing_message
from tests.rows import each


def simulate(local: str, *, attempt: int = 1, lease: LeaseCheck | None = None) -> DeliveryOutcome:
    simulator = SimulatorTransport(inbox_transport(port=1, ehlo_name="localhost"), domain="simulator.test")
    message = outgoing_message(recipient=f"{local}@Simulator.TEST", attempt=attempt)
    return run(simulator.deliver(message, lease=lease or StubLease()))


@each(("local", "status", "simulated_events"), [
    ("delivered", DeliveryStatus.DELIVERED, ()), ("bounced", DeliveryStatus.BOUNCED, ()),
    ("failed", DeliveryStatus.FAILED, ()), ("complained", DeliveryStatus.DELIVERED, ("complained",)),
    ("opened", DeliveryStatus.DELIVERED, ("opened",)), ("clicked", DeliveryStatus.DELIVERED, ("opened", "clicked")),
    ("unsubscribed", DeliveryStatus.DELIVERED, ("unsubscribed",)), ("Delivered", DeliveryStatus.DELIVERED, ()),
    ("nobody", DeliveryStatus.BOUNCED, ()),
])  # fmt: skip
@each("label", ["", "+label", "+a+b"])
def test_the_local_part_decides_the_outcome(local, status, simulated_events, label):
    outcome = simulate(local + label)
    assert (outcome.status, outcome.simulated_events) == (status, simulated_events)
    assert simulate(local + label) == outcome, "the outcome must not vary"


def test_a_deferred_recipient_accepts_the_third_attempt():
    outcomes = [simulate("deferred", attempt=number) for number in (1, 2, 3, 4)]
    assert [one.status for one in outcomes] == [DeliveryStatus.DEFERRED] * 2 + [DeliveryStatus.DELIVERED] * 2
    assert outcomes[0].reason == FailureReason.GREYLISTED


@each("policy", list(SuppressOn))
def test_only_addresses_with_a_label_are_suppressed(policy):
    assert simulate("bounced+1").suppresses(policy)
    assert not simulate("bounced").suppresses(policy)
    assert simulate("complained").never_suppresses
    assert not simulate("complained+1").never_suppresses


def test_a_failure_suppresses_nothing():
    assert not simulate("failed+1").suppresses(SuppressOn.EVERY_BOUNCE)


def test_a_lost_lease_stops_a_simulated_delivery():
    with pytest.raises(LeaseLost):
        simulate("delivered", lease=StubLease(valid=False))


@awaited
async def test_other_domains_get_real_mail():
    async with ScriptedServer() as server:
        simulator = SimulatorTransport(relay(server), domain="simulator.test")
        for address in ("delivered@example.com", "delivered@sub.simulator.test", "x@simulator.test.example"):
            await simulator.deliver(outgoing_message(recipient=address), lease=StubLease())
        assert len(server.messages) == 3
