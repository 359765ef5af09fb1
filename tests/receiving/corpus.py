"""Messages of every kind of origin, with the zone in which they are verified: each case with its envelope.

Signed by dkimpy with keys of this run; the combinations of SPF, DKIM, DMARC, alignment and ARC.
"""

import base64
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import dkim
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

IP = "198.51.100.7"
BODY = b"Hello,\r\n\r\nwhere  is my order?\t\r\n\r\n\r\n"
# By the domain of MAIL FROM or HELO.
SPF_RECORDS: dict[str, Any] = {
    "pass.example": ["v=spf1 ip4:198.51.100.0/24 -all"],
    "fail.example": ["v=spf1 ip4:192.0.2.1 -all"],
    "softfail.example": ["v=spf1 ~all"],
    "neutral.example": ["v=spf1 ?all"],
    "none.example": ["unrelated"],
    "two.example": ["v=spf1 -all", "v=spf1 +all"],
    "broken.example": ["v=spf1 nonsense:x -all"],
    "include.example": ["v=spf1 include:pass.example -all"],
    "redirect.example": ["v=spf1 redirect=pass.example"],
    "mx.example": ["v=spf1 mx -all"],
    "a.example": ["v=spf1 a:host.a.example -all"],
    "exists.example": ["v=spf1 exists:%{ir}.%{v}._spf.%{d} -all"],
    "loop.example": ["v=spf1 include:loop.example -all"],
    "mail.strict.example": ["v=spf1 ip4:198.51.100.7 -all"],
    "strict.example": ["v=spf1 ip4:198.51.100.7 -all"],
}
HOSTS: dict[str, dict[str, Any]] = {
    "mx.example": {"MX": [[10, "host.mx.example"]]},
    "host.mx.example": {"A": [IP]},
    "host.a.example": {"A": ["192.0.2.9", IP]},
    "7.100.51.198.in-addr._spf.exists.example": {"A": ["127.0.0.2"]},
}
DMARC_RECORDS: dict[str, Any] = {
    "pass.example": ["v=DMARC1; p=reject"],
    "fail.example": ["v=DMARC1; p=quarantine; sp=none"],
    "softfail.example": ["v=DMARC1;p=none;rua=mailto:a@softfail.example;"],
    "strict.example": ["v=DMARC1; p=reject; aspf=s; adkim=s"],
    "two.example": ["v=DMARC1; p=none", "v=DMARC1; p=reject"],
    "my-shop.example": ["v=DMARC1; p=reject"],
}
FROM_DOMAINS = (
    "pass.example", "fail.example", "softfail.example", "none.example", "mail.strict.example", "sub.fail.example",
    "my-shop.example",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A message and the envelope with which it arrives."""

    name: str
    source: bytes
    mail_from: str
    helo: str = "pass.example"
    ip: str = IP


@functools.cache
def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65_537, key_size=bits)


@functools.cache
def ed25519_key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.generate()


def _rsa_pem(bits: int = 2048) -> bytes:
    return rsa_key(bits).private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def _rsa_record(bits: int = 2048) -> str:
    public = rsa_key(bits).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"v=DKIM1; k=rsa; p={base64.b64encode(public).decode()}"


def zone() -> dict[str, dict[str, Any]]:
    """Return all records by name and type."""
    records: dict[str, dict[str, Any]] = {name: dict(types) for name, types in HOSTS.items()}
    public = ed25519_key().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    for name, texts in SPF_RECORDS.items():
        records.setdefault(name, {})["TXT"] = texts
    for name, texts in DMARC_RECORDS.items():
        records[f"_dmarc.{name}"] = {"TXT": texts}
    for domain in {*FROM_DOMAINS, "other.example", "strict.example"}:
        records[f"rsa._domainkey.{domain}"] = {"TXT": [_rsa_record()]}
        records[f"small._domainkey.{domain}"] = {"TXT": [_rsa_record(1024)]}
        records[f"ed._domainkey.{domain}"] = {"TXT": [f"v=DKIM1; k=ed25519; p={base64.b64encode(public).decode()}"]}
        records[f"revoked._domainkey.{domain}"] = {"TXT": ["v=DKIM1; p="]}
    return records


def plain(domain: str, *, body: bytes = BODY) -> bytes:
    return (
        f"From: Ada <ada@{domain}>\r\nTo: support@in.example\r\nSubject: Where  is\r\n my order?\r\n"
        f"Date: Fri, 20 Nov 2026 09:12:29 +0000\r\nMessage-ID: <1@{domain}>\r\n\r\n"
    ).encode() + body


def sign(
    message: bytes, domain: str, *, selector: str = "rsa", canonical: str = "relaxed/relaxed", **options: Any
) -> bytes:
    names = tuple(part.encode() for part in canonical.split("/"))
    key: bytes = _rsa_pem(1024 if selector == "small" else 2048)
    algorithm = b"rsa-sha256"
    if selector == "ed":
        raw = ed25519_key().private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
        key, algorithm = base64.b64encode(raw), b"ed25519-sha256"
    field: bytes = dkim.sign(
        message,
        selector.encode(),
        domain.encode(),
        key,
        canonicalize=names,
        signature_algorithm=algorithm,
        include_headers=[b"from", b"to", b"subject", b"date"],
        **options,
    )
    return field + message


def _signatures(domain: str) -> Iterator[tuple[str, bytes]]:
    message = plain(domain)
    yield "unsigned", message
    for canonical in ("relaxed/relaxed", "simple/simple", "relaxed/simple", "simple/relaxed"):
        yield canonical, sign(message, domain, canonical=canonical)
    yield "ed25519", sign(message, domain, selector="ed")
    yield "1024 bits", sign(message, domain, selector="small")
    yield "other domain", sign(message, "other.example")
    yield "organizational domain", sign(message, domain.removeprefix("mail.").removeprefix("sub."))
    yield "two", sign(sign(message, domain), "other.example")
    yield "changed body", sign(message, domain).replace(b"order?\t", b"parcel?")
    yield "changed field", sign(message, domain).replace(b"Where  is", b"Here  is")
    yield "no key", sign(message, domain, selector="lost")
    yield "revoked key", sign(message, domain, selector="revoked")
    yield "broken signature", sign(message, domain).replace(b"bh=", b"bx=")
    yield "added line", sign(message, domain) + b"More\r\n"
    yield "partial", sign(message, domain, length=True) + b"More\r\n"
    yield "empty body", sign(plain(domain, body=b""), domain)


def cases() -> list[Case]:
    """Return all cases: every signature with every From, every SPF record, and ARC chains."""
    found = [
        Case(f"{domain}: {name}", source, f"bounce@{mail_from}")
        for domain in FROM_DOMAINS
        for name, source in _signatures(domain)
        for mail_from in (domain, "none.example")
    ]
    found += [
        Case(f"spf {name} of {domain}", plain(domain), f"a@{name}")
        for name in SPF_RECORDS
        for domain in ("pass.example", name)
    ]
    found += [Case(f"helo {name}", plain("pass.example"), "", helo=name) for name in SPF_RECORDS]
    found += list(_chains())
    return found


def _chains() -> Iterator[Case]:
    message = b"Authentication-Results: mx.example; dmarc=pass\r\n" + sign(plain("pass.example"), "pass.example")
    sealed = _seal(message)
    yield Case("arc", sealed, "a@none.example")
    again = b"Authentication-Results: mx.example; arc=pass\r\n" + sealed
    yield Case("arc of two", _seal(again), "a@none.example")
    yield Case("arc broken", sealed.replace(b"order?\t", b"parcel?"), "a@none.example")
    yield Case("arc incomplete", sealed.replace(b"ARC-Message-Signature", b"X-Message-Signature"), "a@none.example")


def _seal(message: bytes) -> bytes:
    fields = dkim.arc_sign(
        message, b"rsa", b"other.example", _rsa_pem(), b"mx.example", include_headers=[b"from", b"to"]
    )
    return b"".join(fields) + message
