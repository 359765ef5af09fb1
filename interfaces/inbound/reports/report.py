"""Report values: the result of reading a message sent to a return path."""

from dataclasses import dataclass
from enum import Enum


class ReportKind(Enum):
    """The kind of a report, in order of severity: a report has the kind of its most severe recipient status."""

    BOUNCE = "bounce"
    DELAY = "delay"
    RELAYED = "relayed"
    DELIVERED = "delivered"
    COMPLAINT = "complaint"
    OPT_OUT = "opt_out"
    AUTO_REPLY = "auto_reply"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class RecipientStatus:
    """The status that a report gives for one recipient.

    recipients: the recipient's addresses, original and final; empty if none is named.
    status: enhanced status code (RFC 3463), "" if unknown.
    code: SMTP reply code, 0 if unknown.
    reason: a value of core.delivery.bounces.reasons.
    is_hard: a hard bounce, caused by the address itself.
    is_permanent: rejected permanently, rather than given up after temporary failures.
    """

    kind: ReportKind
    recipients: tuple[str, ...] = ()
    status: str = ""
    code: int = 0
    diagnostic: str = ""
    reason: str = ""
    is_hard: bool = False
    is_permanent: bool = False


@dataclass(frozen=True)
class Report:
    """A parsed report.

    return_paths: addresses that a complaint gives as the return path of the message it encloses.
    enclosed: the complete messages that a complaint encloses, with CRLF line ends.
    """

    kind: ReportKind
    recipient_statuses: tuple[RecipientStatus, ...] = ()
    return_paths: tuple[str, ...] = ()
    enclosed: tuple[bytes, ...] = ()

    @property
    def recipients(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(address for status in self.recipient_statuses for address in status.recipients))

    @property
    def most_severe(self) -> RecipientStatus:
        """The most severe status: a hard bounce before a soft one, then in the order of ReportKind."""
        order = list(ReportKind)
        return min(
            self.recipient_statuses,
            key=lambda status: (order.index(status.kind), not status.is_hard),
            default=RecipientStatus(self.kind),
        )

    @property
    def is_hard(self) -> bool:
        return self.most_severe.is_hard

    @property
    def status(self) -> str:
        return self.most_severe.status

    @property
    def diagnostic(self) -> str:
        return self.most_severe.diagnostic

    @property
    def reason(self) -> str:
        return self.most_severe.reason


def build_report(statuses: tuple[RecipientStatus, ...]) -> Report:
    """Return a report of the most severe kind among its statuses; of unknown kind without any."""
    return Report(Report(ReportKind.UNKNOWN, statuses).most_severe.kind, statuses)
