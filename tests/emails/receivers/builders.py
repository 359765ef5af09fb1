"""Pairs of a source and a receiver in each state."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from core.delivery.bounces.signals import SLOW, Signal, SignalKind
from core.delivery.pacing.pace import PaceLimits
from core.delivery.pacing.pairs import PaceSignal, PairKey, PairReport
from core.delivery.transports.transports_file import TransportRoute, Transports, TransportSpec
from emails.models import ReceiverPace
from emails.pacing.paces import exchange_reports

SOURCE = "192.0.2.1"
REPLY = "421 4.7.28 Gmail has detected an unusual rate"


def make_pair(receiver: str, *, source: str = SOURCE, **fields) -> ReceiverPace:
    """Return the row of a pair after a report of this process."""
    values = {"open": 1, "needed": 1, "wanted": 1, "limits": PaceLimits(), **fields}
    exchange_reports([PairReport(PairKey(source, receiver), **values)])
    return ReceiverPace.objects.get(source=source, receiver=receiver)


def name_new_address(settings, *, days: int) -> None:
    """Let the source have been added so many days ago, as the only address of the only transport."""
    address, day = ip_address(SOURCE), datetime.now(UTC).date() - timedelta(days=days)
    own = TransportSpec(name="own", kind="direct", source_addresses=(address,), since={address: day})
    settings.TRANSPORTS = Transports(
        {"own": own}, {"default": TransportRoute("default", ("own",))}, {"default": ("default",)}
    )


def make_limited(receiver: str, **fields) -> ReceiverPace:
    return make_pair(receiver, signals=(PaceSignal(SLOW, began=0.0, reply=REPLY),), **fields)


def make_suspended(receiver: str, *, seconds: float = 600.0, began: float = 0.0, **fields) -> ReceiverPace:
    signal = PaceSignal(
        Signal(SignalKind.SUSPEND, seconds=seconds), began=began, reply="421 RP-001 Blocked for some time"
    )
    return make_pair(receiver, signals=(signal,), **fields)
