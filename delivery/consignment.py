"""What a transport is handed: an envelope and the letter in it."""

from dataclasses import dataclass

from delivery.dkim import SigningKey, sign
from delivery.message import Letter, compose


@dataclass(frozen=True)
class Envelope:
    """Who is told of failures, and who gets it; both addr-specs in ASCII."""

    sender: str
    recipient: str


@dataclass(frozen=True)
class Consignment:
    """One recipient's copy. A provider's API takes the letter apart; SMTP takes the message."""

    envelope: Envelope
    letter: Letter
    key: SigningKey | None = None

    def message(self) -> bytes:
        """Return the bytes to hand over: the same on every attempt, the time of the signature too."""
        composed = compose(self.letter)
        return sign(composed, key=self.key, at=self.letter.date) if self.key else composed
