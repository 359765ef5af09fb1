"""DNS lookups; every DNS query of the service goes through this resolver.

A missing name, a name without such records and a failed lookup are three different results: the first two are
authoritative answers, the third is a `DnsError` and only means that the query must be repeated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import dns.asyncresolver
import dns.exception
import dns.flags
import dns.message
import dns.nameserver
import dns.rdatatype
import dns.resolver

LIFETIME_SECONDS = 5.0
TRY_SECONDS = 2.0
# Larger UDP packets are fragmented on the way (DNS flag day 2020).
UDP_BYTES = 1232


class DnsError(Exception):
    """Raised when a lookup gives no usable answer: SERVFAIL, a timeout, a malformed message."""


class ServerFailure(DnsError):
    """Raised for SERVFAIL: the name servers do not serve the domain, or its DNSSEC signatures are invalid."""


class LookupStatus(Enum):
    """The outcome of a lookup.

    found: records exist.
    no_data: the name exists without such records.
    no_name: NXDOMAIN.
    """

    FOUND = "found"
    NO_DATA = "no_data"
    NO_NAME = "no_name"


@dataclass(frozen=True)
class DnsAnswer:
    """The records of one name and type.

    records, by type: TXT the joined strings of each record; MX (preference, host); TLSA (usage, selector, matching
    type, data); A, AAAA, CNAME, NS, PTR texts.
    Host names are in lower case without the root dot; the host of a null MX is "".
    canonical_name: the name at the end of the CNAME chain.
    ttl_seconds: time the records may be cached; 0 without records.
    is_secure: a validating resolver has verified the answer, also that there is none (DNSSEC).
    """

    status: LookupStatus
    records: tuple[Any, ...] = ()
    canonical_name: str = ""
    ttl_seconds: int = 0
    is_secure: bool = False


class Resolver:
    """Queries the given servers, or those of the system; every lookup ends within its lifetime.

    is_validating: the servers validate DNSSEC, and the way to them is safe, so that their AD bit counts.
    """

    def __init__(
        self,
        servers: Sequence[tuple[str, int]] = (),
        *,
        lifetime_seconds: float = LIFETIME_SECONDS,
        try_seconds: float = TRY_SECONDS,
        is_validating: bool = False,
    ) -> None:
        self._is_validating = is_validating
        self._resolver = dns.asyncresolver.Resolver(configure=not servers)
        if servers:
            self._resolver.nameservers = [dns.nameserver.Do53Nameserver(host, port) for host, port in servers]
        self._resolver.lifetime = lifetime_seconds
        self._resolver.timeout = min(try_seconds, lifetime_seconds)
        if is_validating:
            self._resolver.set_flags(dns.flags.RD | dns.flags.AD)
            self._resolver.use_edns(0, dns.flags.DO, UDP_BYTES)

    @property
    def servers(self) -> list[tuple[str, int]]:
        """The addresses and ports of the name servers."""
        known = self._resolver.nameservers
        return [
            (server, self._resolver.port) if isinstance(server, str) else (server.address, server.port)
            for server in known
            if isinstance(server, str | dns.nameserver.AddressAndPortNameserver)
        ]

    async def look_up(self, name: str, kind: str) -> DnsAnswer:
        """Return the records of one type. Raises DnsError."""
        try:
            answer = await self._resolver.resolve(name, kind, search=False, raise_on_no_answer=False)
        except dns.resolver.NXDOMAIN as missing:
            return DnsAnswer(
                LookupStatus.NO_NAME, is_secure=all(map(self._is_secure, missing.kwargs["responses"].values()))
            )
        except (dns.exception.DNSException, OSError) as error:
            raise _failure(error)(f"{name} {kind}: {type(error).__name__}") from error
        canonical, is_secure = _host(answer.canonical_name), self._is_secure(answer.response)
        if answer.rrset is None:
            return DnsAnswer(LookupStatus.NO_DATA, canonical_name=canonical, is_secure=is_secure)
        records = tuple(map(_record, answer.rrset))
        return DnsAnswer(LookupStatus.FOUND, records, canonical, answer.rrset.ttl, is_secure)

    def _is_secure(self, response: dns.message.Message) -> bool:
        return self._is_validating and bool(response.flags & dns.flags.AD)


def _failure(error: Exception) -> type[DnsError]:
    if not isinstance(error, dns.resolver.NoNameservers):
        return DnsError
    # Each is a server with its port and the reason that it was given up for.
    reasons = {str(reason) for _, _, _, reason, _ in error.kwargs["errors"]}
    return ServerFailure if "SERVFAIL" in reasons else DnsError


def _record(data: Any) -> Any:
    """Return one record in the form that DnsAnswer documents."""
    match dns.rdatatype.to_text(data.rdtype):
        case "TXT":
            return b"".join(data.strings).decode("utf-8", "replace")
        case "MX":
            return data.preference, _host(data.exchange)
        case "TLSA":
            return data.usage, data.selector, data.mtype, bytes(data.cert)
        case "CNAME" | "NS" | "PTR":
            return _host(data.target)
        case _:
            return data.to_text()


def _host(name: Any) -> str:
    return str(name.to_text(omit_final_dot=True)).lower() if len(name) > 1 else ""
