"""Simulated recipients."""

import pytest
from email_validator import validate_email

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, SuppressOn
from core.delivery.transports.interface import LeaseCheck, LeaseLost
from core.delivery.transports.relay import inbox_transport
from core.delivery.transports.simulator import SimulatorTransport, is_simulated
from interfaces.compat.postmark.webhook_format import event_bounce_type
from tests.core.delivery.relaying import awaited, relay, run
from tests.core.delivery.scripted import ScriptedServer, StubLease, outgoing_message
from tests.rows import each

DOMAIN = "simulator.example"


def simulate(
    local: str,
    *,
    attempt: int = 1,
    lease: LeaseCheck | None = None,
    host: str = DOMAIN,
    is_test: bool = False,
) -> DeliveryOutcome:
    # Nothing listens there: a message that is not simulated is not delivered.
    simulator = SimulatorTransport(inbox_transport(port=1, ehlo_name="localhost"), domain=DOMAIN)
    message = outgoing_message(recipient=f"{local}@{host.title()}", attempt=attempt, is_test=is_test)
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
    assert simulate(local + label, host="simulator.test") == outcome, "the earlier default keeps working"


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


def test_a_message_of_a_test_key_is_simulated_for_any_address_and_suppresses_nothing():
    for local, host, status in (
        ("ada", "example.com", DeliveryStatus.DELIVERED),
        ("bounced", "example.com", DeliveryStatus.BOUNCED),
        ("bounced+1", "example.com", DeliveryStatus.BOUNCED),
        ("bounced+1", DOMAIN, DeliveryStatus.BOUNCED),
        ("nobody+1", DOMAIN, DeliveryStatus.BOUNCED),
    ):
        outcome = simulate(local, host=host, is_test=True)
        assert (outcome.status, outcome.never_suppresses) == (status, True), (local, host)


def test_a_failure_suppresses_nothing():
    assert not simulate("failed+1").suppresses(SuppressOn.EVERY_BOUNCE)


def test_a_lost_lease_stops_a_simulated_delivery():
    with pytest.raises(LeaseLost):
        simulate("delivered", lease=StubLease(valid=False))


@awaited
async def test_other_domains_get_real_mail():
    async with ScriptedServer() as server:
        simulator = SimulatorTransport(relay(server), domain=DOMAIN)
        addresses = (
            "delivered@example.com", "delivered@sub.simulator.test", "x@simulator.test.example", "delivered@example",
            "onboarding@resend.dev", "delivered@sub.resend.dev", "delivered@notresend.dev", "a@postmarkapp.com",
            "a@sendgrid.net",
        )  # fmt: skip
        for address in addresses:
            assert not is_simulated(address, domain=DOMAIN)
            await simulator.deliver(outgoing_message(recipient=address), lease=StubLease())
        assert len(server.messages) == len(addresses)


POSTMARK = "bounce-testing.postmarkapp.com"


@each(("address", "status", "reason"), [
    ("delivered@resend.dev", DeliveryStatus.DELIVERED, ""),
    ("Bounced+x@resend.dev", DeliveryStatus.BOUNCED, "unknown_user"),
    ("complained@resend.dev", DeliveryStatus.DELIVERED, ""),
    ("suppressed@resend.dev", DeliveryStatus.FAILED, "recipient_suppressed"),
    (f"HardBounce@{POSTMARK}", DeliveryStatus.BOUNCED, "unknown_user"),
    (f"Hard_Bounce@{POSTMARK}", DeliveryStatus.BOUNCED, "unknown_user"),
    (f"anything@{POSTMARK}", DeliveryStatus.BOUNCED, "unknown_user"),
    (f"SoftBounce@{POSTMARK}", DeliveryStatus.BOUNCED, "mailbox_full"),
    (f"spam_notification@{POSTMARK}", DeliveryStatus.BOUNCED, "spam"),
    (f"transient@{POSTMARK}", DeliveryStatus.DEFERRED, "greylisted"),
    ("test@blackhole.postmarkapp.com", DeliveryStatus.DELIVERED, ""),
    ("anyone@sink.sendgrid.net", DeliveryStatus.DELIVERED, ""),
])  # fmt: skip
def test_the_test_addresses_of_other_services(address, status, reason):
    local, _, host = address.partition("@")
    outcome = simulate(local, host=host)
    assert is_simulated(address, domain=DOMAIN)
    assert (outcome.status, outcome.reason) == (status, reason)


def test_validators_of_addresses_accept_the_default_domain(settings):
    assert settings.SIMULATOR_DOMAIN == DOMAIN
    address = f"bounced+1@{DOMAIN}"
    assert validate_email(address, check_deliverability=False).normalized == address


@each(
    ("name", "type_"),
    [("HardBounce", "HardBounce"), ("SoftBounce", "SoftBounce"), ("Blocked", "Blocked"), ("DnsError", "DnsError"),
     ("SpamNotification", "SpamNotification"), ("VirusNotification", "VirusNotification"),
     ("BadEmailAddress", "BadEmailAddress"), ("ManuallyDeactivated", "ManuallyDeactivated"),
     ("DMARCPolicy", "Blocked")],
)  # fmt: skip
def test_a_test_bounce_has_its_type_in_postmarks_format(name, type_):
    assert event_bounce_type("bounced", simulate(name, host=POSTMARK).reason)[0] == type_
