"""Delivery outcomes and the replies that they are based on."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, StrEnum

from core.delivery.bounces.reasons import FailureReason
from core.delivery.recipients import Diversion

# A hostile host may send a long reply; the stored text is for people.
MAX_LENGTH = 1000
ENHANCED_CODE = re.compile(r"([245]\.\d{1,3}\.\d{1,3})(?=\s|$)")
# Control characters, lone surrogates, and characters that change text direction or end a line in a browser.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class DeliveryStatus(Enum):
    """The status of a delivery attempt.

    sent: the next host accepted the message.
    delivered: the recipient's own host accepted it.
    deferred: try again.
    parked: no attempt was made or counted, because the destination was full or paused after failures.
    cancelled: none is made, because a cap drops the email.
    """

    SENT = "sent"
    DELIVERED = "delivered"
    DEFERRED = "deferred"
    BOUNCED = "bounced"
    FAILED = "failed"
    PARKED = "parked"
    CANCELLED = "cancelled"


class SuppressOn(Enum):
    """The bounces that suppress an address (docs/specification.md, Suppressions)."""

    RECIPIENT_FAULT = "recipient_fault"
    EVERY_BOUNCE = "every_bounce"


class TlsPolicyKind(StrEnum):
    """The policy of a recipient's domain for TLS: none, MTA-STS (RFC 8461) or DANE (RFC 7672)."""

    NONE = "none"
    STS = "sts"
    DANE = "dane"


class TlsResult(StrEnum):
    """The result of a session in a TLS report (RFC 8460, section 4.3); after the slash, its failure-reason-code."""

    SUCCESS = "success"
    NO_STARTTLS = "starttls-not-supported"
    HOST_MISMATCH = "certificate-host-mismatch"
    EXPIRED = "certificate-expired"
    NOT_TRUSTED = "certificate-not-trusted"
    TLSA_MISMATCH = "certificate-not-trusted/tlsa-mismatch"
    NO_HANDSHAKE = "validation-failure/tls-handshake-failed"
    MX_MISMATCH = "validation-failure/mx-mismatch"
    DNSSEC_INVALID = "dnssec-invalid"
    STS_FETCH_ERROR = "sts-policy-fetch-error"
    STS_INVALID = "sts-policy-invalid"
    STS_CERTIFICATE = "sts-webpki-invalid"


@dataclass(frozen=True)
class SessionTls:
    """The TLS of the session of an attempt.

    version: such as TLSv1.3; None for plaintext, and if the policy permitted no session.
    verified: the certificate of the host was verified, as its policy or the sender requires.
    result: for the TLS reports of a domain that asks for them; None for others.
    domain: this domain; empty for others.
    """

    version: str | None
    policy: TlsPolicyKind
    verified: bool
    result: TlsResult | None = None
    domain: str = ""


@dataclass(frozen=True)
class Reply:
    """A host's reply.

    code: 0 if there was none.
    text: safe to store and to show.
    """

    code: int
    text: str

    @property
    def enhanced_code(self) -> str | None:
        """Return the enhanced status code (RFC 3463) at the start of the text, or None."""
        match = ENHANCED_CODE.match(self.text)
        return match[1] if match else None


@dataclass(frozen=True)
class DeliveryOutcome:
    """The outcome of a delivery attempt: its status and the reply.

    reason: empty for a success.
    is_recipient_fault: according to the reply, the address itself is invalid.
    never_suppresses: under any policy; for refusals unrelated to the address and for simulator addresses.
    may_be_delivered: the whole message was sent, and the reply was lost.
    success_dsn_requested: the host was asked to report the delivery, so "delivered" may follow later.
    provider_id: the provider's message id, used in its tracking events.
    simulated_events: names of the events that a simulated recipient triggers next.
    transport: the name of the one that made the attempt; empty without named transports.
    failovers: the earlier ones of the same attempt, which have certainly not taken the message.
    retry_after: the shortest wait before the next attempt; zero for the usual one.
    listed_by: the block list that has the sending address, according to the reply; empty if none.
    waits_for: what a parked message waits for, or an expired one waited for (WaitCause of emails.states).
    receiver: the key of the recipient's receiver (core.delivery.receivers); empty if it is not known.
    pair: the number of the pair of source and receiver whose pace it waits for; 0 for none.
    paced_at_most: the wait for this pace after which the next transport may get the message; zero without limit.
    exceeds_day: it exceeds the messages of the day of a new address, and may leave by the next transport of its route.
    diversion: the message went elsewhere than to its recipient; None if not.
    tls: that of a direct delivery, or the policy that prevented it; None for others.
    """

    status: DeliveryStatus
    reply: Reply
    reason: str = ""
    is_recipient_fault: bool = False
    never_suppresses: bool = False
    may_be_delivered: bool = False
    success_dsn_requested: bool = False
    provider_id: str = ""
    simulated_events: tuple[str, ...] = ()
    transport: str = ""
    failovers: "tuple[Failover, ...]" = ()
    retry_after: timedelta = timedelta(0)
    listed_by: str = ""
    waits_for: str = ""
    receiver: str = ""
    pair: int = 0
    paced_at_most: timedelta = timedelta(0)
    exceeds_day: bool = False
    diversion: Diversion | None = None
    tls: SessionTls | None = None

    @property
    def attempts(self) -> "tuple[DeliveryOutcome, ...]":
        """Return the outcomes of all transports that made the attempt, the last one at the end."""
        return (*(failover.outcome for failover in self.failovers), self)

    def suppresses(self, policy: SuppressOn) -> bool:
        """Return whether this outcome suppresses the address."""
        if self.status is not DeliveryStatus.BOUNCED or self.never_suppresses:
            return False
        return self.is_recipient_fault or policy is SuppressOn.EVERY_BOUNCE


@dataclass(frozen=True)
class Failover:
    """The refusal or connection failure of a transport, and the name of the transport that was tried next."""

    outcome: DeliveryOutcome
    next_transport: str


def deferred(reason: FailureReason, text: str) -> DeliveryOutcome:
    """Return the outcome of an attempt without a reply; the text may contain any characters."""
    return DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(0, safe_text(text)), reason)


def parked(
    reason: FailureReason, text: str, *, waits_for: str = "destination", retry_after: timedelta = timedelta(0)
) -> DeliveryOutcome:
    """Return the outcome of an attempt that was not made."""
    return DeliveryOutcome(
        DeliveryStatus.PARKED, Reply(0, safe_text(text)), reason, retry_after=retry_after, waits_for=waits_for
    )


def reply_of(code: int, lines: Sequence[bytes]) -> Reply:
    """Return a reply from its raw lines without codes; bytes that are not UTF-8 are escaped."""
    return Reply(code, safe_text(b"\n".join(lines)[: MAX_LENGTH * 4].decode("utf-8", "backslashreplace")))


def safe_text(raw: str, *, max_length: int = MAX_LENGTH) -> str:
    """Truncate a host's text and escape control characters: PostgreSQL refuses NUL, terminals interpret ESC."""
    return UNSAFE.sub(lambda match: f"\\x{ord(match[0]):02x}", raw[:max_length])
