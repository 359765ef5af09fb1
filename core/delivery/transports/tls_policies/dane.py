"""DANE (RFC 7672): the TLSA records of mail hosts, and the certificates that match them."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import (
    BasicConstraints,
    Certificate,
    DNSName,
    KeyUsage,
    SubjectAlternativeName,
    load_der_x509_certificate,
)
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    Policy,
    PolicyBuilder,
    Store,
    VerificationError,
)

from core.lib.network.resolver import DnsAnswer, LookupStatus, Resolver

# Usages (RFC 7671, section 5): the other two are for PKIX and unusable for SMTP (RFC 7672, section 3.1.3).
TRUST_ANCHOR, END_ENTITY = 2, 3
SELECTORS = CERTIFICATE, PUBLIC_KEY = 0, 1
FULL = 0
# Matching types; the value of a digest has its length.
DIGESTS = {1: hashlib.sha256, 2: hashlib.sha512}
MAX_RECORDS = 100
MAX_DATA_BYTES = 16 * 1024
MAX_CHAIN = 10
MAX_TEXT = 500
CACHE_SECONDS = 300.0
MAX_CACHED_HOSTS = 10_000


def _check_is_authority(_: Policy, __: Certificate, constraints: BasicConstraints) -> None:
    if not constraints.ca:
        raise ValueError("The certificate is not one of an authority.")


def _check_may_sign(_: Policy, __: Certificate, usage: KeyUsage | None) -> None:
    if usage is not None and not usage.key_cert_sign:
        raise ValueError("The key may not sign certificates.")


# Private authorities leave out extensions that those of browsers must have.
AUTHORITY = (
    ExtensionPolicy.permit_all()
    .require_present(BasicConstraints, Criticality.AGNOSTIC, _check_is_authority)
    .may_be_present(KeyUsage, Criticality.AGNOSTIC, _check_may_sign)
)
HOST = ExtensionPolicy.permit_all().require_present(SubjectAlternativeName, Criticality.AGNOSTIC, None)


@dataclass(frozen=True)
class TlsaRecord:
    """A TLSA record (RFC 6698)."""

    usage: int
    selector: int
    matching: int
    data: bytes

    @property
    def is_usable(self) -> bool:
        """Whether the record can authenticate a mail host."""
        if self.usage not in (TRUST_ANCHOR, END_ENTITY) or self.selector not in SELECTORS:
            return False
        if self.matching == FULL:
            return 0 < len(self.data) <= MAX_DATA_BYTES
        digest = DIGESTS.get(self.matching)
        return digest is not None and len(self.data) == digest().digest_size

    def matches(self, certificate: Certificate) -> bool:
        """Return whether a certificate or its key is that of the record."""
        selected = _selected(certificate, self.selector)
        digest = DIGESTS.get(self.matching)
        return self.data == (digest(selected).digest() if digest else selected)


@dataclass(frozen=True)
class DaneHost:
    """A mail host with TLSA records.

    base_domain: the name at which they are, for SNI.
    records: the usable ones; without any, TLS is required and nothing is verified (RFC 7672, section 2.2).
    """

    base_domain: str
    records: tuple[TlsaRecord, ...]

    def texts(self) -> Iterator[str]:
        """Yield the usable records in the form of a zone file, each cut to MAX_TEXT, for TLS reports."""
        for record in self.records:
            place = f"_25._tcp.{self.base_domain}. IN TLSA"
            yield f"{place} {record.usage} {record.selector} {record.matching} {record.data.hex()}"[:MAX_TEXT]

    @property
    def has_trust_anchor(self) -> bool:
        return any(record.usage == TRUST_ANCHOR for record in self.records)

    def verifies(self, chain: Sequence[bytes], *, names: Iterable[str]) -> bool:
        """Return whether the certificates of a host match its records.

        chain: in DER, that of the host first.
        names: of which the certificate must have one if a trust anchor has signed it. A record of the certificate of
        the host itself replaces its names and dates (RFC 7671, section 5.1).
        """
        try:
            certificates = [load_der_x509_certificate(one) for one in chain[:MAX_CHAIN]]
        except ValueError:
            return False
        if not certificates:
            return False
        return any(
            record.matches(certificates[0])
            if record.usage == END_ENTITY
            else _is_signed(certificates, record, names=names)
            for record in self.records
        )


class DaneLookup:
    """Looks up TLSA records through a validating resolver, and caches them for five minutes at most."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._cache: OrderedDict[str, tuple[float, DaneHost | None]] = OrderedDict()

    async def find(self, host: str) -> DaneHost | None:
        """Return the records of a mail host, or None without secure ones.

        Raises DnsError: without an answer the host must not be used (RFC 7672, section 2.1.2).
        """
        cached = self._cache.get(host)
        if cached and time.monotonic() < cached[0]:
            return cached[1]
        found, seconds = await self._look_up(host)
        self._cache[host] = time.monotonic() + min(seconds, CACHE_SECONDS), found
        self._cache.move_to_end(host)
        if len(self._cache) > MAX_CACHED_HOSTS:
            self._cache.popitem(last=False)
        return found

    async def _look_up(self, host: str) -> tuple[DaneHost | None, float]:
        """Return the records at the first name that has some, and the seconds for which they may be kept."""
        for name in await self._base_domains(host):
            answer = await self._resolver.look_up(f"_25._tcp.{name}", "TLSA")
            if answer.status is LookupStatus.FOUND and answer.is_secure:
                records = [TlsaRecord(*values) for values in answer.records[:MAX_RECORDS]]
                return DaneHost(name, _preferred(records)), answer.ttl_seconds
        return None, CACHE_SECONDS

    async def _base_domains(self, host: str) -> list[str]:
        """Return the names at which a host has its records (RFC 7672, section 2.2.2).

        A host whose addresses are not signed has none: its name servers may not answer such lookups at all. Behind an
        alias, its target comes before the original name, which alone counts if only the alias is signed.
        """
        found = await self._resolver.look_up(host, "A")
        if found.status is not LookupStatus.FOUND:
            found = await self._resolver.look_up(host, "AAAA")
        target = found.canonical_name or host
        if found.is_secure:
            return list(dict.fromkeys([target, host]))
        return [host] if target != host and await self._is_signed_alias(host) else []

    async def _is_signed_alias(self, host: str) -> bool:
        answer: DnsAnswer = await self._resolver.look_up(host, "CNAME")
        return answer.status is LookupStatus.FOUND and answer.is_secure


def _preferred(records: Iterable[TlsaRecord]) -> tuple[TlsaRecord, ...]:
    """Return the usable records, of digests only the strongest of a usage and selector (RFC 7671, section 9)."""
    usable = [record for record in records if record.is_usable]
    strongest: dict[tuple[int, int], int] = {}
    for record in usable:
        place = record.usage, record.selector
        strongest[place] = max(strongest.get(place, FULL), record.matching)
    return tuple(record for record in usable if record.matching in (FULL, strongest[(record.usage, record.selector)]))


def _selected(certificate: Certificate, selector: int) -> bytes:
    if selector == CERTIFICATE:
        return certificate.public_bytes(Encoding.DER)
    try:
        return certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except (UnsupportedAlgorithm, ValueError):
        return b""


def _is_signed(chain: Sequence[Certificate], record: TlsaRecord, *, names: Iterable[str]) -> bool:
    """Return whether a trust anchor of the record signed the certificate of a host, for one of the names."""
    anchors = [one for one in (*chain[1:], *_given_certificate(record)) if record.matches(one)]
    if not anchors:
        return False
    builder = PolicyBuilder().store(Store(anchors)).extension_policies(ca_policy=AUTHORITY, ee_policy=HOST)
    return any(_is_valid(builder, chain, name) for name in names)


def _is_valid(builder: PolicyBuilder, chain: Sequence[Certificate], name: str) -> bool:
    try:
        builder.build_server_verifier(DNSName(name)).verify(chain[0], list(chain[1:]))
    except (VerificationError, ValueError):
        return False
    return True


def _given_certificate(record: TlsaRecord) -> list[Certificate]:
    """Return the certificate that a record contains, which the host need not send."""
    if record.selector != CERTIFICATE or record.matching != FULL:
        return []
    try:
        return [load_der_x509_certificate(record.data)]
    except ValueError:
        return []
