"""DKIM signatures (RFC 6376, 8463) and the ARC chain (RFC 8617) of a received message, verified with dkimpy."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypedDict

from receiving.reading.budget import ProcessorBudget
from receiving.reading.dns_lookups import DnsUnavailable, MessageLookups
from receiving.reading.libraries import canonicalization, dkim
from receiving.reading.signature_tags import SELECTOR, Signature, read_name, read_tags

MAX_SIGNATURES = 10
MAX_CHAIN = 10
# Expressions of the library take quadratic time in the length of a field about a signature.
MAX_SIGNATURE_BYTES = 8 * 1024
MAX_WHITESPACE = re.compile(rb"\s{100}")
MAX_HEADER_BYTES = 128 * 1024
MAX_FIELDS = 400
# The most bytes that an ARC chain may make us hash: each of its sets hashes the body again.
MAX_CHAIN_BYTES = 64 * 1024 * 1024
MIN_KEY_BITS = 1024
SIGNATURE_FIELDS = (b"dkim-signature", b"arc-message-signature", b"arc-seal", b"arc-authentication-results")
SIGNED_SETS = (b"arc-message-signature", b"arc-seal")
END_OF_HEADER = re.compile(rb"\r?\n\r?\n")
# For the keys of a chain, whose i= is no identity (RFC 8617, section 4.1).
ANY_OF_CHAIN = Signature({b"a": b"rsa-sha256"})
# dkimpy skips these lines, and the second is a field for other readers; it adds the lines folded below to another one.
SKIPPED_LINE = re.compile(rb"\nFrom |\AFrom[ \t]+:")


class DkimVerdict(TypedDict):
    """The result of one signature as the resource shows it."""

    result: str
    domain: str
    selector: str


@dataclass(frozen=True)
class SignatureVerdict:
    """The result of one signature. domain, selector: empty if it does not name them."""

    result: str
    domain: str = ""
    selector: str = ""

    def to_json(self) -> DkimVerdict:
        return {"result": self.result, "domain": self.domain, "selector": self.selector}


class SignedMessage:
    """A message split once for all of its signatures."""

    def __init__(self, source: bytes, lookups: MessageLookups, budget: ProcessorBudget) -> None:
        self._lookups, self._budget = lookups, budget
        end = END_OF_HEADER.search(source, 0, MAX_HEADER_BYTES)
        self.is_bounded = end is not None and source.count(b"\n", 0, end.end()) <= 4 * MAX_FIELDS
        header = source[: end.start()] if end and self.is_bounded else b""
        body = source[end.end() :] if end and self.is_bounded else b""
        self._header = _with_crlf(header) + b"\r\n\r\n"
        # Some hosts count and sign LF; over SMTP all lines end with CRLF.
        self._body = _with_crlf(body)
        self._has_key = False

    def verify_signatures(self) -> list[SignatureVerdict]:
        """Return the verdicts of the first MAX_SIGNATURES signatures, topmost first."""
        signed = self._open(dkim.DKIM)
        if signed is None:
            return []
        fields = [value for name, value in signed.headers if name.lower() == b"dkim-signature"]
        return [self._verify(signed, number, value) for number, value in enumerate(fields[:MAX_SIGNATURES])]

    def verify_chain(self) -> str:
        """Return the result of the ARC chain: pass, fail or none; temperror if it was not verified."""
        chain = self._open(dkim.ARC) if b"arc-seal" in self._header.lower() else None
        sets = _names(chain).count(b"arc-seal") if chain else 0
        if chain is None or not sets:
            return "none"
        values = [value for name, value in chain.headers if name.lower() in SIGNATURE_FIELDS]
        if sets > MAX_CHAIN or sets * len(self._body) > MAX_CHAIN_BYTES or not all(map(_is_bounded, values)):
            return "fail" if sets > 50 else "temperror"
        return self._chain_result(chain) if self._budget.seconds_left > 0 else "temperror"

    def _chain_result(self, chain: "dkim.ARC") -> str:
        newest = _newest_signature(chain.headers)
        if newest is None:
            return "fail"
        try:
            result, *_ = chain.verify(dnsfunc=partial(self._find_key, signature=ANY_OF_CHAIN))
        except DnsUnavailable:
            return "temperror"
        except Exception:  # noqa: BLE001 - the library raises many types for a malformed chain
            return "fail"
        return "pass" if result == b"pass" and self._coverage(chain, newest) == "pass" else "fail"

    def _open(self, kind: type) -> "dkim.DomainSigner | None":
        """Return a header as the library reads it; None if it cannot: such a header has no signatures."""
        if not self.is_bounded or SKIPPED_LINE.search(self._header):
            return None
        try:
            opened = kind(self._header, minkey=MIN_KEY_BITS)
        except (dkim.DKIMException, IndexError):
            return None
        opened.body = self._body
        return opened

    def _verify(self, signed: "dkim.DKIM", number: int, value: bytes) -> SignatureVerdict:
        if not _is_bounded(value):
            return SignatureVerdict("permerror")
        signature = Signature(read_tags(value))
        if not signature.is_acceptable or _names(signed).count(b"from") != 1:
            result = "permerror"
        elif self._budget.seconds_left <= 0:
            result = "temperror"
        else:
            result = self._result(signed, number, signature)
        return SignatureVerdict(result, signature.domain, signature.selector)

    def _result(self, signed: "dkim.DKIM", number: int, signature: Signature) -> str:
        self._has_key = False
        try:
            is_valid = signed.verify(idx=number, dnsfunc=partial(self._find_key, signature=signature))
        except DnsUnavailable:
            return "temperror"
        except dkim.ValidationError as error:
            # A signature whose hash differs is one that failed; others could not be understood.
            return "fail" if "body hash mismatch" in str(error) else "neutral"
        except dkim.KeyFormatError:
            return "policy" if signed.keysize and signed.keysize < MIN_KEY_BITS else "permerror"
        except Exception:  # noqa: BLE001 - the library raises many types for a malformed signature
            return "neutral"
        if is_valid:
            return self._coverage(signed, signature)
        return "fail" if self._has_key else "permerror"

    def _coverage(self, signed: "dkim.DomainSigner", signature: Signature) -> str:
        """Return the result of a valid signature: `policy` if a part of what is shown is not signed.

        That is a text after the length in l=, or a field beside the signed one (RFC 6376, sections 8.2 and 8.15).
        """
        canonical = canonicalization.CanonicalizationPolicy.from_c_value(signature.tags.get(b"c"))
        size = len(canonical.canonicalize_body(self._body))
        length = int(signature.tags.get(b"l", size))
        if length > size:
            return "permerror"
        return "policy" if length < size or signature.has_unsigned_duplicate(_names(signed)) else "pass"

    def _find_key(self, name: bytes, timeout: float = 5, *, signature: Signature) -> bytes | None:
        """Return the key at a name (dkimpy's dnsfunc), None without one for the signature. Raises DnsUnavailable."""
        key_name = read_name(name.removesuffix(b"."), grammar=SELECTOR)
        records = [record for record in self._lookups.look_up(key_name, "TXT") if "p=" in record] if key_name else []
        key = signature.usable_key(str(records[0])) if records else None
        self._has_key = key is not None
        return key


def _with_crlf(data: bytes) -> bytes:
    is_normal = data.count(b"\n") == data.count(b"\r\n")
    return data if is_normal else data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _is_bounded(value: bytes) -> bool:
    return len(value) <= MAX_SIGNATURE_BYTES and MAX_WHITESPACE.search(value) is None


def _names(signed: "dkim.DomainSigner") -> list[bytes]:
    return [name.lower() for name, _ in signed.headers]


def _newest_signature(fields: Sequence[tuple[bytes, bytes]]) -> Signature | None:
    """Return the newest ARC-Message-Signature; None if a signature or seal of the chain, or its From, is invalid.

    An older signature need not be valid, but must be one (RFC 8617, section 5.2).
    """
    found = [
        (name.lower(), value, Signature(read_tags(value))) for name, value in fields if name.lower() in SIGNED_SETS
    ]
    if not all(signature.is_named and _has_instance(value, signature) for _, value, signature in found):
        return None
    messages = [signature for name, _, signature in found if name == b"arc-message-signature"]
    newest = max(messages, key=lambda signature: int(signature.tags[b"i"]), default=None)
    is_from_signed = newest is not None and b"from" in newest.signed_fields
    is_from_single = [name.lower() for name, _ in fields].count(b"from") == 1
    return newest if is_from_signed and is_from_single else None


def _has_instance(value: bytes, signature: Signature) -> bool:
    """Return whether i= has at most two digits, and is the number by which dkimpy puts a field into its set."""
    found = dkim.ARC.INSTANCE_RE.search(value)
    return found is not None and len(found[1]) <= 2 and found[1] == signature.tags.get(b"i")
