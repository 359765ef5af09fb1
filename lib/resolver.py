"""The only door to the DNS.

A name that does not exist, a name without such records, and a server that cannot say are three answers
that are never mixed up: the first two are facts, the third is `DnsTrouble` and means nothing but "ask again".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import dns.asyncresolver
import dns.exception
import dns.nameserver
import dns.rdatatype
import dns.resolver

LIFETIME_SECONDS = 5.0
TRY_SECONDS = 2.0


class DnsTrouble(Exception):
    """The DNS gave no answer that counts: SERVFAIL, a time-out, a broken message."""


class Status(Enum):
    """found: there are records. no_data: the name exists without such records. no_name: NXDOMAIN."""

    FOUND = "found"
    NO_DATA = "no_data"
    NO_NAME = "no_name"


@dataclass(frozen=True)
class Answer:
    """What the DNS says of a name and a type.

    records, by type: TXT the joined strings of each record; MX (preference, host); A, AAAA, CNAME, NS texts.
    Host names are in lower case without the root dot; the host of a null MX is "".
    canonical_name: where CNAMEs led to.
    ttl_seconds: how long the records may be kept; 0 when there are none.
    """

    status: Status
    records: tuple[Any, ...] = ()
    canonical_name: str = ""
    ttl_seconds: int = 0


class Resolver:
    """Asks the given servers, or the system's; every look-up ends within its lifetime."""

    def __init__(
        self,
        servers: Sequence[tuple[str, int]] = (),
        *,
        lifetime_seconds: float = LIFETIME_SECONDS,
        try_seconds: float = TRY_SECONDS,
    ) -> None:
        self._resolver = dns.asyncresolver.Resolver(configure=not servers)
        if servers:
            self._resolver.nameservers = [dns.nameserver.Do53Nameserver(host, port) for host, port in servers]
        self._resolver.lifetime = lifetime_seconds
        self._resolver.timeout = min(try_seconds, lifetime_seconds)

    async def look_up(self, name: str, kind: str) -> Answer:
        """Ask for records of one type. Raises DnsTrouble."""
        try:
            answer = await self._resolver.resolve(name, kind, search=False, raise_on_no_answer=False)
        except dns.resolver.NXDOMAIN:
            return Answer(Status.NO_NAME)
        except (dns.exception.DNSException, OSError) as error:
            raise DnsTrouble(f"{name} {kind}: {type(error).__name__}") from error
        canonical = _host(answer.canonical_name)
        if answer.rrset is None:
            return Answer(Status.NO_DATA, canonical_name=canonical)
        return Answer(Status.FOUND, tuple(map(_record, answer.rrset)), canonical, answer.rrset.ttl)


def _record(data: Any) -> Any:
    """Return one record as Answer describes it."""
    match dns.rdatatype.to_text(data.rdtype):
        case "TXT":
            return b"".join(data.strings).decode("utf-8", "replace")
        case "MX":
            return data.preference, _host(data.exchange)
        case "CNAME" | "NS":
            return _host(data.target)
        case _:
            return data.to_text()


def _host(name: Any) -> str:
    return str(name.to_text(omit_final_dot=True)).lower() if len(name) > 1 else ""
