"""Simulator: recipients whose address decides their outcome, with any transport; for trials and tests.

The recipients are those of the simulator's domains, the test addresses of other services (docs/decisions/0292), and all
recipients of test emails (docs/decisions/0109). The local parts of the simulator's domains are `delivered@ bounced@
failed@ deferred@ complained@ opened@ clicked@ unsubscribed@`, each also with a +label. No mail leaves the process; the
outcome depends only on the address and the attempt number.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.delivery.message.compose import OutgoingMessage
from core.delivery.transports.composing import compose_message
from core.delivery.transports.interface import SendPermit, Transport, require_valid

DEFERRED_ATTEMPTS = 2

DELIVERED = DeliveryOutcome(DeliveryStatus.DELIVERED, Reply(250, "2.0.0 Delivered by the simulator"))
BOUNCED = DeliveryOutcome(
    DeliveryStatus.BOUNCED,
    Reply(550, "5.1.1 The simulator knows no such user"),
    FailureReason.UNKNOWN_USER,
    is_recipient_fault=True,
)
DEFERRED = DeliveryOutcome(
    DeliveryStatus.DEFERRED,
    Reply(451, "4.7.1 The simulator accepts this address on the third attempt"),
    FailureReason.GREYLISTED,
)
SUPPRESSED = DeliveryOutcome(
    DeliveryStatus.FAILED, Reply(0, "The simulator treats the address as suppressed"), "recipient_suppressed"
)
FAILED = DeliveryOutcome(DeliveryStatus.FAILED, Reply(0, "The simulator failed this delivery"), FailureReason.EXPIRED)
UNKNOWN_RECIPIENT = DeliveryOutcome(
    DeliveryStatus.BOUNCED,
    Reply(
        550, "5.1.1 The simulator knows delivered, bounced, failed, deferred, complained, opened, clicked, unsubscribed"
    ),
    FailureReason.UNKNOWN_USER,
    is_recipient_fault=True,
)


@dataclass(frozen=True)
class _Behavior:
    """The outcome of a simulated recipient. first: that of the first DEFERRED_ATTEMPTS attempts, if different."""

    outcome: DeliveryOutcome
    first: DeliveryOutcome | None = None

    def at(self, attempt: int) -> DeliveryOutcome:
        """Return the outcome of an attempt, counted from 1."""
        return self.first if self.first and attempt <= DEFERRED_ATTEMPTS else self.outcome


BEHAVIORS = {
    "delivered": _Behavior(DELIVERED),
    "bounced": _Behavior(BOUNCED),
    "failed": _Behavior(FAILED),
    "deferred": _Behavior(DELIVERED, first=DEFERRED),
    "complained": _Behavior(replace(DELIVERED, simulated_events=("complained",))),
    "opened": _Behavior(replace(DELIVERED, simulated_events=("opened",))),
    "clicked": _Behavior(replace(DELIVERED, simulated_events=("opened", "clicked"))),
    "unsubscribed": _Behavior(replace(DELIVERED, simulated_events=("unsubscribed",))),
}


# The default before 1.2, which some validators of addresses refuse. Nothing can be delivered to it.
OLD_DOMAIN = "simulator.test"
UNKNOWN = _Behavior(UNKNOWN_RECIPIENT)


def _refusal(code: int, text: str, reason: FailureReason, *, is_recipient_fault: bool = False) -> _Behavior:
    status = DeliveryStatus.BOUNCED
    return _Behavior(DeliveryOutcome(status, Reply(code, text), reason, is_recipient_fault=is_recipient_fault))


@dataclass(frozen=True)
class _TestDomain:
    """The test addresses of another service.

    behaviors: by the local part, in lower case and without underscores.
    others: the behavior of other local parts; None if they are real addresses.
    """

    behaviors: Mapping[str, _Behavior]
    others: _Behavior | None = None


TEST_DOMAINS = {
    # https://resend.com/docs/dashboard/emails/send-test-emails
    "resend.dev": _TestDomain(
        {
            **{name: BEHAVIORS[name] for name in ("delivered", "bounced", "complained")},
            "suppressed": _Behavior(SUPPRESSED),
        }
    ),
    # https://postmarkapp.com/support/article/1239-how-to-test-bounces: other addresses are hard bounces.
    "bounce-testing.postmarkapp.com": _TestDomain(
        {
            "transient": BEHAVIORS["deferred"],
            "unsubscribe": BEHAVIORS["unsubscribed"],
            "softbounce": _refusal(552, "5.2.2 The simulated mailbox is full", FailureReason.MAILBOX_FULL),
            "blocked": _refusal(550, "5.7.1 The simulator blocks this sender", FailureReason.BLOCKLISTED),
            "spamnotification": _refusal(550, "5.7.1 The simulator takes this for spam", FailureReason.SPAM),
            "virusnotification": _refusal(550, "5.7.1 The simulator found a virus", FailureReason.VIRUS),
            "dmarcpolicy": _refusal(550, "5.7.26 The simulated DMARC policy is reject", FailureReason.AUTHENTICATION),
            "dnserror": _refusal(550, "5.4.4 The simulator found no mail host", FailureReason.DNS),
            "bademailaddress": _refusal(
                553, "5.1.3 The simulator cannot read this address", FailureReason.BAD_ADDRESS, is_recipient_fault=True
            ),
            "manuallydeactivated": _Behavior(SUPPRESSED),
        },
        others=BEHAVIORS["bounced"],
    ),
    "blackhole.postmarkapp.com": _TestDomain({}, others=BEHAVIORS["delivered"]),
    # Accepted and deleted, as SendGrid's documentation says.
    "sink.sendgrid.net": _TestDomain({}, others=BEHAVIORS["delivered"]),
}


def is_simulated(address: str, *, domain: str) -> bool:
    """Return whether the simulator has an address, also in a live email. domain: that of the simulator."""
    return _find_behavior(address.lower(), domain=domain) is not None


def _find_behavior(address: str, *, domain: str) -> _Behavior | None:
    local, _, host = address.rpartition("@")
    name = local.partition("+")[0]
    if host in {domain, OLD_DOMAIN}:
        return BEHAVIORS.get(name, UNKNOWN)
    if tests := TEST_DOMAINS.get(host):
        return tests.behaviors.get(name.replace("_", ""), tests.others)
    return None


class SimulatorTransport:
    """Answers for simulated recipients; passes every other message to the wrapped transport."""

    def __init__(self, transport: Transport, *, domain: str) -> None:
        self.transport = transport
        self._domain = domain.lower()

    @property
    def trouble(self) -> str | None:
        return self.transport.trouble

    def end_sessions(self) -> None:
        self.transport.end_sessions()

    async def deliver(self, message: OutgoingMessage, *, lease: SendPermit) -> DeliveryOutcome:
        """Deliver one message, or simulate its recipient."""
        address = message.recipient.lower()
        behavior = _find_behavior(address, domain=self._domain)
        if message.is_test:
            name = address.rpartition("@")[0].partition("+")[0]
            behavior = behavior or BEHAVIORS.get(name, BEHAVIORS["delivered"])
        if behavior is None:
            return await self.transport.deliver(message, lease=lease)
        # A message that cannot be composed fails here as with a real transport.
        await compose_message(message)
        require_valid(lease)
        outcome = behavior.at(message.attempt)
        # Addresses without a label are shared by everyone and reused, so they are never suppressed.
        is_shared = "+" not in address.rpartition("@")[0]
        return replace(outcome, never_suppresses=True) if message.is_test or is_shared else outcome
