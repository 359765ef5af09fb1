"""Storing of reports as they arrive: within limits, and before the reply to the host that sent them."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from ipaddress import ip_address, ip_network

from django.db.models import Count, Sum
from django.db.models.functions import Now

from core.delivery.bounces.replies import safe_text
from core.lib.network.address_guard import unwrap
from domains.models import Domain, DomainReport
from domains.reports.addresses import ReportAddress
from domains.reports.reading.documents import MAX_BYTES

PREFIXES = {4: 24, 6: 48}
DAY = timedelta(days=1)


@dataclass(frozen=True)
class ReportLimit:
    """Reports about one domain within a day, and their bytes."""

    reports: int
    size_bytes: int


OF_DOMAIN = ReportLimit(500, 100 * 1024 * 1024)
OF_NETWORK = ReportLimit(50, 25 * 1024 * 1024)


class Admission(StrEnum):
    """Whether a report is stored."""

    ACCEPTED = "accepted"
    UNKNOWN = "unknown"
    LIMITED = "limited"


def admit_report(address: ReportAddress, *, peer: str, size_bytes: int = 1) -> Admission:
    """Return whether a report from a host would be stored. peer: its IP address."""
    domain = Domain.objects.filter(id=address.domain_id).select_related("workspace").first()
    if domain is None or domain.workspace.is_deleted:
        return Admission.UNKNOWN
    today = DomainReport.objects.filter(domain=domain.id, received_at__gt=Now() - DAY)
    of_network = today.filter(network=network_of(peer)[:43])
    rooms = ((OF_DOMAIN, today), (OF_NETWORK, of_network))
    uses = [(limit, rows.aggregate(reports=Count("id"), total_bytes=Sum("size"))) for limit, rows in rooms]
    has_room = all(
        use["reports"] < limit.reports and (use["total_bytes"] or 0) + size_bytes <= limit.size_bytes
        for limit, use in uses
    )
    return Admission.ACCEPTED if has_room else Admission.LIMITED


def store_report(address: ReportAddress, source: bytes, *, peer: str, sender: str = "") -> Admission:
    """Store a report of at most MAX_BYTES, unless a limit is reached. sender: the envelope sender."""
    admission = admit_report(address, peer=peer, size_bytes=len(source))
    if admission is Admission.ACCEPTED:
        DomainReport.objects.create(
            domain_id=address.domain_id,
            kind=address.kind,
            source=source[:MAX_BYTES],
            size=len(source),
            sender=safe_text(sender)[:320],
            network=network_of(peer)[:43],
        )
    return admission


def network_of(peer: str) -> str:
    """Return the /24 of an IPv4 address or the /48 of an IPv6 address; any other text unchanged."""
    try:
        address = unwrap(ip_address(peer))
    except ValueError:
        return peer
    return str(ip_network(f"{address}/{PREFIXES[address.version]}", strict=False))
