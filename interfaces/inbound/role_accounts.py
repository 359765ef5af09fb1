"""Daily limits of messages to postmaster and abuse: anyone may write to them (docs/decisions/0094).

Each limit applies to one network and to all. A message that proves a recipient, such as a complaint with a sealed
return path, has a separate share, so that a flood does not shut out feedback loops.
"""

from dataclasses import dataclass
from datetime import timedelta

from django.db.models.functions import Now

from domains.reports.storing import network_of
from interfaces.inbound.matching import read_mail_report
from interfaces.inbound.models import MailReport

# RFC 5321, 4.5.1 and RFC 2142 require these addresses, and feedback loops are registered with one.
ROLE_ACCOUNTS = frozenset({"postmaster", "abuse"})


@dataclass(frozen=True)
class DailyLimit:
    """Messages accepted within a day: of one network, and of all."""

    per_network: int
    total: int


ANY_MESSAGE = DailyLimit(per_network=50, total=500)
WITH_PROOF = DailyLimit(per_network=500, total=1_000)


def is_within(limit: DailyLimit, *, peer: str) -> bool:
    """Return whether a further message of this peer is within a limit."""
    today = MailReport.objects.filter(recipient_id=None, received_at__gt=Now() - timedelta(days=1))
    # At most as many rows as WITH_PROOF allows.
    networks = [network_of(address) for address in today.values_list("peer", flat=True)]
    return len(networks) < limit.total and networks.count(network_of(peer)) < limit.per_network


def is_acceptable(report: MailReport) -> bool:
    """Return whether a message is within ANY_MESSAGE, or within WITH_PROOF and proves a recipient."""
    if is_within(ANY_MESSAGE, peer=report.peer):
        return True
    return is_within(WITH_PROOF, peer=report.peer) and bool(read_mail_report(report)[0])
