"""Delivery request: the input of a transport, an envelope with its outgoing message."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from delivery.message.compose import OutgoingMessage, compose
from delivery.message.dkim import SigningKey, sign


@dataclass(frozen=True)
class Envelope:
    """Return path and recipient, the MAIL FROM and RCPT TO addresses; both addr-specs."""

    sender: str
    recipient: str


@dataclass(frozen=True)
class AttemptHistory:
    """Earlier attempts. attempt: the current one, from 1. reason: of the last attempt. age: the time since then."""

    attempt: int = 1
    reason: str = ""
    age: timedelta = timedelta()


FIRST_ATTEMPT = AttemptHistory()


@dataclass(frozen=True)
class DeliveryRequest:
    """One message for one recipient. SMTP sends its bytes; a provider's API takes its fields.

    tags, metadata: passed to providers only, never part of the message.
    """

    envelope: Envelope
    outgoing_message: OutgoingMessage
    key: SigningKey | None = None
    history: AttemptHistory = FIRST_ATTEMPT
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)

    def message(self) -> bytes:
        """Return the signed message: the same bytes on every attempt, including the signature time."""
        composed = compose(self.outgoing_message)
        return sign(composed, key=self.key, at=self.outgoing_message.date) if self.key else composed
