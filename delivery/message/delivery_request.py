"""What a transport is handed: an envelope and the letter in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from delivery.message.compose import OutgoingMessage, compose
from delivery.message.dkim import SigningKey, sign


@dataclass(frozen=True)
class Envelope:
    """Who is told of failures, and who gets it; both addr-specs."""

    sender: str
    recipient: str


@dataclass(frozen=True)
class History:
    """What was tried before. attempt counts from 1; reason is the last attempt's, age the time since then."""

    attempt: int = 1
    reason: str = ""
    age: timedelta = timedelta()


FIRST_ATTEMPT = History()


@dataclass(frozen=True)
class DeliveryRequest:
    """One recipient's copy. A provider's API takes the letter apart; SMTP takes the message.

    tags and metadata reach providers only, never the message.
    """

    envelope: Envelope
    letter: OutgoingMessage
    key: SigningKey | None = None
    history: History = FIRST_ATTEMPT
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)

    def message(self) -> bytes:
        """Return the bytes to hand over: the same on every attempt, the time of the signature too."""
        composed = compose(self.letter)
        return sign(composed, key=self.key, at=self.letter.date) if self.key else composed
