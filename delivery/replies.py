"""What became of one hand-over."""

import re
from dataclasses import dataclass
from enum import Enum

# 64 lines of a hostile host's wisdom are enough; the text is for people.
MAX_LENGTH = 1000
ENHANCED_CODE = re.compile(r"([245]\.\d{1,3}\.\d{1,3})(?=\s|$)")
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class Verdict(Enum):
    """sent: the next host has it. delivered: so has the recipient's own host. deferred: try again."""

    SENT = "sent"
    DELIVERED = "delivered"
    DEFERRED = "deferred"
    BOUNCED = "bounced"
    FAILED = "failed"


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
class Outcome:
    """A verdict with the reply that it rests on; reason is the classification, empty for a success."""

    verdict: Verdict
    reply: Reply
    reason: str = ""


def safe_text(raw: str, *, max_length: int = MAX_LENGTH) -> str:
    """Cut a host's text to length and escape its controls: PostgreSQL refuses NUL, terminals obey ESC."""
    return CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}", raw[:max_length])
