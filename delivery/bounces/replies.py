"""What became of one hand-over."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from delivery.bounces.reasons import Reason

# A hostile host may say much; the text is for people.
MAX_LENGTH = 1000
ENHANCED_CODE = re.compile(r"([245]\.\d{1,3}\.\d{1,3})(?=\s|$)")
# Controls, lone surrogates, and what turns the direction of writing or ends a line in a browser.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class DeliveryStatus(Enum):
    """sent: the next host has it. delivered: so has the recipient's own host. deferred: try again.

    parked: nothing was tried, since the destination has all the connections it may have, or is shut for
    a while after failures; no attempt was used.
    """

    SENT = "sent"
    DELIVERED = "delivered"
    DEFERRED = "deferred"
    BOUNCED = "bounced"
    FAILED = "failed"
    PARKED = "parked"


class SuppressOn(Enum):
    """Which bounces put an address on the suppression list (CONTRACT section 4)."""

    RECIPIENT_FAULT = "recipient_fault"
    EVERY_BOUNCE = "every_bounce"


@dataclass(frozen=True)
class Reply:
    """A host's answer: code 0 when there was none; the text is safe to store and to show."""

    code: int
    text: str

    @property
    def enhanced_code(self) -> str | None:
        """Return the enhanced status code (RFC 3463) that the text begins with."""
        match = ENHANCED_CODE.match(self.text)
        return match[1] if match else None


@dataclass(frozen=True)
class DeliveryOutcome:
    """A verdict with the reply that it rests on; reason is the classification, empty for a success.

    is_recipient_fault: the address itself is bad, as far as the reply says.
    never_suppresses: whatever the policy, for what is no fault of the address at all and for the simulator's own.
    may_be_delivered: the message was handed over whole, and the answer was lost.
    success_dsn_requested: the host promised to report the delivery, so that "delivered" comes later.
    provider_id: a provider's id of the message, by which its tracking events name it.
    then: what a simulated recipient does next, as names of events.
    """

    verdict: DeliveryStatus
    reply: Reply
    reason: str = ""
    is_recipient_fault: bool = False
    never_suppresses: bool = False
    may_be_delivered: bool = False
    success_dsn_requested: bool = False
    provider_id: str = ""
    then: tuple[str, ...] = ()

    def suppresses(self, policy: SuppressOn) -> bool:
        """Tell whether the address belongs on the suppression list after this."""
        if self.verdict is not DeliveryStatus.BOUNCED or self.never_suppresses:
            return False
        return self.is_recipient_fault or policy is SuppressOn.EVERY_BOUNCE


def deferred(reason: Reason, text: str) -> DeliveryOutcome:
    """Return the outcome of an attempt that no host answered; the text may hold anything."""
    return DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(0, safe_text(text)), reason)


def parked(reason: Reason, text: str) -> DeliveryOutcome:
    """Return the outcome of an attempt that was not made."""
    return DeliveryOutcome(DeliveryStatus.PARKED, Reply(0, safe_text(text)), reason)


def reply_of(code: int, lines: Sequence[bytes]) -> Reply:
    """Return a reply from its lines as they came, without their codes; bytes outside UTF-8 are escaped."""
    return Reply(code, safe_text(b"\n".join(lines)[: MAX_LENGTH * 4].decode("utf-8", "backslashreplace")))


def safe_text(raw: str, *, max_length: int = MAX_LENGTH) -> str:
    """Cut a host's text to length and escape its controls: PostgreSQL refuses NUL, terminals obey ESC."""
    return UNSAFE.sub(lambda match: f"\\x{ord(match[0]):02x}", raw[:max_length])
