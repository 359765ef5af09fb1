"""What a report says, as values: the words that every reader in this room speaks."""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a message to a return path is. The order is that of weight: a report is what its gravest fact is."""

    BOUNCE = "bounce"
    DELAY = "delay"
    RELAYED = "relayed"
    DELIVERED = "delivered"
    COMPLAINT = "complaint"
    OPT_OUT = "opt_out"
    AUTO_REPLY = "auto_reply"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Fact:
    """What a report says about one recipient.

    recipients: the addresses that it is known by, the original and the final one; empty when none is named.
    status: an enhanced status code (RFC 3463), code: an SMTP reply code; empty and 0 when unknown.
    reason: why, in the words of inbound.reports.classification. is_hard: the fault is the recipient's, for good.
    is_permanent: refused for good, as against given up after a while.
    """

    kind: Kind
    recipients: tuple[str, ...] = ()
    status: str = ""
    code: int = 0
    diagnostic: str = ""
    reason: str = ""
    is_hard: bool = False
    is_permanent: bool = False


@dataclass(frozen=True)
class Report:
    """A message to a return path, read. references: what a complaint holds of the mail that it is about."""

    kind: Kind
    facts: tuple[Fact, ...] = ()
    references: tuple[str, ...] = ()

    @property
    def recipients(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(address for fact in self.facts for address in fact.recipients))

    @property
    def gravest(self) -> Fact:
        """The fact that the report is about most of all: a hard bounce before a soft one before all else."""
        order = list(Kind)
        return min(self.facts, key=lambda fact: (order.index(fact.kind), not fact.is_hard), default=Fact(self.kind))

    @property
    def is_hard(self) -> bool:
        return self.gravest.is_hard

    @property
    def status(self) -> str:
        return self.gravest.status

    @property
    def diagnostic(self) -> str:
        return self.gravest.diagnostic

    @property
    def reason(self) -> str:
        return self.gravest.reason


def report_of(facts: tuple[Fact, ...]) -> Report:
    """Return the report that these facts make; without any it is of no kind."""
    return Report(Report(Kind.UNKNOWN, facts).gravest.kind, facts)
