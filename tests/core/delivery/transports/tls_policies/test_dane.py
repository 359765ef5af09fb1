"""DANE records and certificates (RFC 6698, 7671, 7672)."""

import hashlib
from datetime import UTC, datetime, timedelta

import trustme
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import Certificate, load_pem_x509_certificate

from core.delivery.transports.tls_policies.dane import DaneHost, TlsaRecord, _preferred
from tests.rows import each

NAME = "mx.example.com"
AUTHORITY = trustme.CA()
OTHER = trustme.CA()
MIDDLE = AUTHORITY.create_child_ca()


def certificates(issuer: trustme.CA, *names: str, **options: datetime) -> list[Certificate]:
    """Return the chain of a new certificate, its own first, with the root at the end."""
    leaf = issuer.issue_cert(*names, **options)
    chain = [load_pem_x509_certificate(pem.bytes()) for pem in leaf.cert_chain_pems]
    return [*chain, load_pem_x509_certificate(AUTHORITY.cert_pem.bytes())]


def in_der(chain: list[Certificate]) -> list[bytes]:
    return [one.public_bytes(Encoding.DER) for one in chain]


def record(certificate: Certificate, usage: int, selector: int, matching: int) -> TlsaRecord:
    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    data = key if selector else certificate.public_bytes(Encoding.DER)
    digest = {0: lambda value: value, 1: lambda v: hashlib.sha256(v).digest(), 2: lambda v: hashlib.sha512(v).digest()}
    return TlsaRecord(usage, selector, matching, digest[matching](data))


def verifies(chain: list[Certificate], *records: TlsaRecord, names: tuple[str, ...] = (NAME,)) -> bool:
    return DaneHost(NAME, records).verifies(in_der(chain), names=names)


EVERY_FORM = [(selector, matching) for selector in (0, 1) for matching in (0, 1, 2)]


class TestEndEntity:
    @each(("selector", "matching"), EVERY_FORM)
    def test_matches_its_own_certificate_only(self, selector, matching):
        mine, other = (certificates(AUTHORITY, NAME) for _ in range(2))
        assert verifies(mine, record(mine[0], 3, selector, matching))
        assert not verifies(other, record(mine[0], 3, selector, matching))

    def test_needs_neither_a_name_nor_a_date(self):
        expired = certificates(OTHER, "elsewhere.example", not_after=datetime.now(UTC) - timedelta(days=1))
        assert verifies(expired, record(expired[0], 3, 1, 1))

    def test_of_an_issuer_does_not_match(self):
        chain = certificates(AUTHORITY, NAME)
        assert not verifies(chain, record(chain[-1], 3, 1, 1))

    def test_one_of_several_records_suffices(self):
        chain, future = certificates(AUTHORITY, NAME), certificates(AUTHORITY, NAME)
        assert verifies(chain, record(future[0], 3, 1, 1), record(chain[0], 3, 1, 1))


class TestTrustAnchor:
    @each(("selector", "matching"), EVERY_FORM)
    def test_matches_certificates_that_it_signed(self, selector, matching):
        anchor = record(load_pem_x509_certificate(AUTHORITY.cert_pem.bytes()), 2, selector, matching)
        assert verifies(certificates(AUTHORITY, NAME), anchor)
        assert verifies(certificates(MIDDLE, NAME), anchor)
        assert not verifies(certificates(OTHER, NAME), anchor)

    def test_may_be_an_intermediate_one(self):
        chain = certificates(MIDDLE, NAME)
        assert verifies(chain[:2], record(chain[1], 2, 1, 1))

    def test_in_full_need_not_be_sent(self):
        chain = certificates(AUTHORITY, NAME)
        assert verifies(chain[:1], record(chain[-1], 2, 0, 0))
        assert not verifies(chain[:1], record(chain[-1], 2, 0, 1))

    @each(("names", "expected"), [((NAME,), True), (("example.com", NAME), True), (("example.com",), False)])
    def test_needs_one_of_the_names(self, names, expected):
        chain = certificates(AUTHORITY, NAME)
        assert verifies(chain, record(chain[-1], 2, 0, 1), names=names) is expected

    def test_needs_a_valid_date(self):
        chain = certificates(AUTHORITY, NAME, not_after=datetime.now(UTC) - timedelta(days=1))
        assert not verifies(chain, record(chain[-1], 2, 0, 1))

    def test_cannot_be_a_certificate_of_a_host(self):
        chain, host = certificates(AUTHORITY, NAME), certificates(OTHER, "other.example")
        assert not verifies([chain[0], host[0]], record(host[0], 2, 0, 1))
        assert not verifies(host, record(host[0], 2, 0, 1), names=("other.example",))


class TestUsable:
    @each(("usage", "selector", "matching", "length"), [
        (0, 0, 1, 32), (1, 1, 1, 32), (255, 1, 1, 32), (3, 2, 1, 32), (3, 1, 3, 32), (3, 1, 1, 31), (3, 1, 2, 32),
        (3, 1, 0, 0), (2, 0, 0, 20_000),
    ])  # fmt: skip
    def test_are_not_records_of_other_kinds(self, usage, selector, matching, length):
        assert not TlsaRecord(usage, selector, matching, b"x" * length).is_usable

    def test_are_only_the_strongest_digests_of_a_kind(self):
        weak, strong = TlsaRecord(3, 1, 1, b"x" * 32), TlsaRecord(3, 1, 2, b"x" * 64)
        anchor, full = TlsaRecord(2, 0, 1, b"x" * 32), TlsaRecord(3, 1, 0, b"x")
        assert _preferred([weak, strong, anchor, full]) == (strong, anchor, full)

    @each("chain", [[], [b""], [b"\x30\x03\x02\x01\x00"], [b"\xff" * 5000]])
    def test_garbage_in_place_of_certificates_matches_nothing(self, chain):
        host = DaneHost(NAME, (TlsaRecord(3, 1, 1, b"x" * 32), TlsaRecord(2, 0, 0, b"garbage")))
        assert not host.verifies(chain, names=[NAME])
