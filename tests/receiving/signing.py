"""Signatures with any tags, and names as the grammar of RFC 6376 has them: without code of the product."""

import base64
import hashlib
import re
import unicodedata

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.receiving import corpus

TAGS = b"v=1; a=rsa-sha256; c=relaxed/relaxed; d=evil.example; s=s1; h=from:to:subject:date; bh=%BH%; b="
BODY = b"Please pay to account A.\r\n"
# RFC 6376, section 3.2, with the UTF-8 of RFC 8616, section 4; RFC 5321, section 4.1.2.
FWS = rb"(?:(?:[ \t]*\r\n)?[ \t]+)"
VALUE = rb"(?:[!-:<-~]|[\xc2-\xf4][\x80-\xbf]+)"
TAG = re.compile(
    rb"%b?([A-Za-z][A-Za-z0-9_]*)%b?=%b?((?:%b+(?:%b+%b+)*)?)%b?" % (FWS, FWS, FWS, VALUE, FWS, VALUE, FWS)
)
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


def message(domain: str = "victim.example", *, body: bytes = BODY, fields: bytes = b"") -> bytes:
    return (
        (
            f"From: Ada <ada@{domain}>\r\nTo: hello@demo.example\r\nSubject: Invoice\r\n"
            "Date: Sat, 28 Nov 2026 10:00:00 +0000\r\n"
        ).encode()
        + fields
        + b"\r\n"
        + body
    )


def sign(source: bytes, tags: bytes = TAGS, *, name: bytes = b"DKIM-Signature", size: int | None = None) -> bytes:
    """Return the message with a signature field on top. size: of the signed part of the body."""
    header, _, body = source.partition(b"\r\n\r\n")
    digest = hashlib.sha1 if b"sha1" in tags else hashlib.sha256
    tags = tags.replace(b"%BH%", base64.b64encode(digest(_relaxed_body(body)[:size]).digest()))
    fields = re.split(rb"\r\n(?![ \t])", header)
    found = re.search(rb"[; \t\n]h=([^;]*)", tags)
    signed = [_take(fields, part.strip().lower()) for part in found[1].split(b":")] if found else []
    return name + b": " + tags + _sign_rsa(signed, name + b": " + tags) + b"\r\n" + source


def seal(source: bytes, *, message_tags: bytes, seal_tags: bytes, size: int | None = None) -> bytes:
    """Return the message with an ARC set of instance 1 on top."""
    results = b"ARC-Authentication-Results: i=1; mx.example; none"
    signature = sign(source, message_tags, name=b"ARC-Message-Signature", size=size).removesuffix(b"\r\n" + source)
    field = b"ARC-Seal: " + seal_tags
    return b"\r\n".join([field + _sign_rsa([results, signature], field), signature, results, source])


def strict_tags(value: bytes) -> dict[bytes, bytes] | None:
    """Return the tags of a tag list, None if it is not of the grammar or has a tag twice."""
    specs = value.strip(b" \t\r\n").removesuffix(b";").split(b";")
    found = [TAG.fullmatch(spec) for spec in specs]
    tags = {match[1]: match[2] for match in found if match}
    return tags if len(tags) == len(specs) else None


def strict_name(value: bytes, *, labels: int = 2, allowed: str = "") -> str:
    """Return a domain name as A-labels in lower case; empty if it is none, or has fewer labels."""
    try:
        names = [_a_label(label) for label in value.decode().split(".")]
    except UnicodeDecodeError:
        return ""
    is_valid = all(LABEL.fullmatch(re.sub(f"[{allowed}]", "x", name) if allowed else name) for name in names)
    name = ".".join(names)
    return name if is_valid and len(names) >= labels and len(name) < 254 and max(map(len, names)) < 64 else ""


def record(text: str = "v=DKIM1; k=rsa; p=%P%", *, bits: int = 2048) -> str:
    """Return the key record of sign(). %P%: its public key."""
    public = corpus.rsa_key(bits).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return text.replace("%P%", base64.b64encode(public).decode())


def _a_label(label: str) -> str:
    if label.isascii():
        return label.lower()
    is_letters = all(unicodedata.category(character)[0] in "LMN" or character == "-" for character in label)
    is_stable = unicodedata.normalize("NFKC", label.lower()) == label
    return f"xn--{label.encode('punycode').decode()}" if is_letters and is_stable else ""


def _take(fields: list[bytes], name: bytes) -> bytes:
    """Remove and return the lowest field of a name; empty without one."""
    for number in reversed(range(len(fields))):
        if fields[number].partition(b":")[0].lower() == name:
            return fields.pop(number)
    return b""


def _sign_rsa(fields: list[bytes], own: bytes) -> bytes:
    """Return a signature of relaxed fields and of its own one."""
    data = b"".join(_relaxed(field) + b"\r\n" for field in fields if field) + _relaxed(own)
    is_weak = b"rsa-sha1" in own
    algorithm = SHA1() if is_weak else SHA256()
    return base64.b64encode(corpus.rsa_key(2048).sign(data, PKCS1v15(), algorithm))


def _relaxed(field: bytes) -> bytes:
    name, _, value = field.partition(b":")
    return name.lower() + b":" + re.sub(rb"[ \t]+", b" ", value.replace(b"\r\n", b"")).strip()


def _relaxed_body(body: bytes) -> bytes:
    lines = [re.sub(rb"[ \t]+", b" ", line).rstrip(b" ") for line in body.split(b"\r\n")]
    text = b"\r\n".join(lines).rstrip(b"\r\n")
    return text + b"\r\n" if text else b""
