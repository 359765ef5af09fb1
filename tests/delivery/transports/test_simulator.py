"""Recipients that behave as their name says."""

from datetime import timedelta

import pytest

from delivery.bounces.reasons import Reason
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, SuppressOn
from delivery.message.delivery_request import DeliveryRequest, Envelope, History
from delivery.transports.interface import Lease, LeaseLost
from delivery.transports.relay import inbox_transport
from delivery.transports.simulator import SimulatorTransport
from tests.delivery.relaying import relay, run
from tests.delivery.scripted import HeldLease, ScriptedServer, letter


def simulate(local: str, *, attempt: int = 1, lease: Lease | None = None) -> DeliveryOutcome:
    simulator = SimulatorTransport(inbox_transport(port=1, ehlo_name="localhost"), domain="simulator.test")
    envelope = Envelope("bounce@example.org", f"{local}@Simulator.TEST")
    consignment = DeliveryRequest(envelope, letter(), history=History(attempt, "greylisted", timedelta(minutes=1)))
    return run(simulator.deliver(consignment, lease=lease or HeldLease()))


@pytest.mark.parametrize(
    ("local", "verdict", "then"),
    [
        ("delivered", DeliveryStatus.DELIVERED, ()),
        ("bounced", DeliveryStatus.BOUNCED, ()),
        ("failed", DeliveryStatus.FAILED, ()),
        ("complained", DeliveryStatus.DELIVERED, ("complained",)),
        ("opened", DeliveryStatus.DELIVERED, ("opened",)),
        ("clicked", DeliveryStatus.DELIVERED, ("opened", "clicked")),
        ("unsubscribed", DeliveryStatus.DELIVERED, ("unsubscribed",)),
        ("Delivered", DeliveryStatus.DELIVERED, ()),
        ("nobody", DeliveryStatus.BOUNCED, ()),
    ],
)
@pytest.mark.parametrize("label", ["", "+label", "+a+b"])
def test_a_life_is_told_by_the_name(local, verdict, then, label):
    outcome = simulate(local + label)
    assert (outcome.verdict, outcome.then) == (verdict, then)
    assert simulate(local + label) == outcome, "every time the same"


def test_the_third_attempt_is_the_charm():
    outcomes = [simulate("deferred", attempt=number) for number in (1, 2, 3, 4)]
    assert [one.verdict for one in outcomes] == [DeliveryStatus.DEFERRED] * 2 + [DeliveryStatus.DELIVERED] * 2
    assert outcomes[0].reason == Reason.GREYLISTED


@pytest.mark.parametrize("policy", list(SuppressOn))
def test_only_labelled_addresses_are_suppressed(policy):
    assert simulate("bounced+1").suppresses(policy)
    assert not simulate("bounced").suppresses(policy)
    assert simulate("complained").never_suppresses
    assert not simulate("complained+1").never_suppresses


def test_a_failure_is_no_bounce():
    assert not simulate("failed+1").suppresses(SuppressOn.EVERY_BOUNCE)


def test_a_lost_lease_ends_it_here_too():
    with pytest.raises(LeaseLost):
        simulate("delivered", lease=HeldLease(held=False))


def test_everybody_else_gets_real_mail():
    async def work() -> None:
        async with ScriptedServer() as server:
            simulator = SimulatorTransport(relay(server), domain="simulator.test")
            for address in ("delivered@example.com", "delivered@sub.simulator.test", "x@simulator.test.example"):
                await simulator.deliver(
                    DeliveryRequest(Envelope("b@example.org", address), letter()), lease=HeldLease()
                )
            assert len(server.messages) == 3

    run(work())
