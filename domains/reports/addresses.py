"""Addresses for reports about a domain: `d-…` and `t-…` at RETURN_PATH_DOMAIN, and a URL for TLS reports.

The token of a domain is its id in base32. It is public, as the record that has it; so everything that arrives is
checked, and it stays valid when the keys of the installation change (docs/decisions/0397).
"""

import base64
import binascii
import uuid
from dataclasses import dataclass

from django.conf import settings

from core.lib.ids import from_uuid, to_uuid
from domains.models import Domain, DomainReport

Kind = DomainReport.AggregateKind

PREFIXES = {Kind.DMARC: "d-", Kind.TLS: "t-"}
TOKEN_LENGTH = 26


@dataclass(frozen=True)
class ReportAddress:
    """The domain and the kind of a report by its address; whether the domain exists is not checked."""

    domain_id: str
    kind: Kind


def has_report_addresses() -> bool:
    """Return whether RETURN_PATH_DOMAIN is a name that other hosts can send to."""
    return not settings.RETURN_PATH_DOMAIN.lower().endswith("localhost")


def report_token(domain: Domain) -> str:
    """Return the token of a domain in lower case, as some hosts change the case of a local part."""
    return base64.b32encode(to_uuid(domain.id, prefix="dom_").bytes).rstrip(b"=").decode().lower()


def report_address(domain: Domain, kind: Kind) -> str:
    """Return the address for reports of a kind about a domain."""
    return f"{PREFIXES[kind]}{report_token(domain)}@{settings.RETURN_PATH_DOMAIN.lower()}"


def tls_report_url(domain: Domain) -> str:
    """Return the URL to which TLS reports about a domain can be posted."""
    return f"{settings.PUBLIC_URL}/reports/tls/{report_token(domain)}"


def read_report_address(address: str) -> ReportAddress | None:
    """Return the domain and the kind of an address; None for every other one."""
    local, _, host = address.lower().partition("@")
    if host != settings.RETURN_PATH_DOMAIN.lower():
        return None
    for kind, prefix in PREFIXES.items():
        if local.startswith(prefix) and (domain_id := read_token(local.removeprefix(prefix))):
            return ReportAddress(domain_id, kind)
    return None


def read_token(token: str) -> str | None:
    """Return the id in a token; None for every other text."""
    if len(token) != TOKEN_LENGTH:
        return None
    try:
        data = base64.b32decode(f"{token.upper()}======".encode("ascii"))
    except (binascii.Error, UnicodeEncodeError):
        return None
    return from_uuid(uuid.UUID(bytes=data), prefix="dom_")
