"""DKIM signatures (RFC 6376, 8463) and the ARC chain (RFC 8617) of a received message, verified with dkimpy."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from receiving.reading.budget import ProcessorBudget
from receiving.reading.dns_lookups import DnsUnavailable, MessageLookups
from receiving.reading.libraries import dkim

MAX_SIGNATURES = 10
MAX_CHAIN = 10
# Expressions of the library take quadratic time in the length of a field about a signature.
MAX_SIGNATURE_BYTES = 8 * 1024
MAX_WHITESPACE = re.compile(rb"\s{100}")
MAX_HEADER_BYTES = 128 * 1024
MAX_FIELDS = 400
# Of a body and of the sets of an ARC chain, each of which signs it.
MAX_CHAIN_BYTES = 64 * 1024 * 1024
MIN_KEY_BITS = 1024
SIGNATURE_FIELDS = (b"dkim-signature", b"arc-message-signature", b"arc-seal", b"arc-authentication-results")
END_OF_HEADER = re.compile(rb"\r?\n\r?\n")
DnsFunction = Callable[..., bytes | None]


@dataclass(frozen=True)
class SignatureVerdict:
    """The result of one signature. domain, selector: empty if it does not name them."""

    result: str
    domain: str = ""
    selector: str = ""

    def to_json(self) -> dict[str, str]:
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
        self._missing_keys: set[str] = set()

    def verify_signatures(self) -> list[SignatureVerdict]:
        """Return the verdicts of the first MAX_SIGNATURES signatures, topmost first."""
        signed = self._open(dkim.DKIM)
        if signed is None:
            return []
        fields = [value for name, value in signed.headers if name.lower() == b"dkim-signature"]
        return [self._verify(signed, number, value) for number, value in enumerate(fields[:MAX_SIGNATURES])]

    def verify_chain(self) -> str:
        """Return the result of the ARC chain: pass, fail or none; temperror if it was not verified."""
        chain = self._open(dkim.ARC)
        if chain is None or not any(name.lower() == b"arc-seal" for name, _ in chain.headers):
            return "none"
        sets = sum(name.lower() == b"arc-seal" for name, _ in chain.headers)
        values = [value for name, value in chain.headers if name.lower() in SIGNATURE_FIELDS]
        if sets > MAX_CHAIN or sets * len(self._body) > MAX_CHAIN_BYTES or not all(map(_is_bounded, values)):
            return "fail" if sets > 50 else "temperror"
        if self._budget.seconds_left <= 0:
            return "temperror"
        try:
            result, *_ = chain.verify(dnsfunc=self._find_key)
        except DnsUnavailable:
            return "temperror"
        except Exception:  # noqa: BLE001 - the library raises many types for a malformed chain
            return "fail"
        return result.decode() if result else "fail"

    def _open(self, kind: type) -> "dkim.DomainSigner | None":
        if not self.is_bounded:
            return None
        try:
            opened = kind(self._header, minkey=MIN_KEY_BITS)
        except dkim.DKIMException:
            return None
        opened.body = self._body
        return opened

    def _verify(self, signed: "dkim.DKIM", number: int, value: bytes) -> SignatureVerdict:
        if not _is_bounded(value):
            return SignatureVerdict("permerror")
        domain, selector = _named(value, b"d"), _named(value, b"s")
        if self._budget.seconds_left <= 0:
            return SignatureVerdict("temperror", domain, selector)
        return SignatureVerdict(self._result(signed, number, f"{selector}._domainkey.{domain}"), domain, selector)

    def _result(self, signed: "dkim.DKIM", number: int, key_name: str) -> str:
        try:
            is_valid = signed.verify(idx=number, dnsfunc=self._find_key)
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
            return "pass"
        return "permerror" if key_name.lower() in self._missing_keys else "fail"

    def _find_key(self, name: bytes, timeout: float = 5) -> bytes | None:
        """Return the key record at a name (dkimpy's dnsfunc). Raises DnsUnavailable."""
        text = name.decode("utf-8", "replace").rstrip(".")
        records = [record for record in self._lookups.look_up(text, "TXT") if "p=" in record]
        if not records:
            self._missing_keys.add(text.lower())
            return None
        return str(records[0]).encode("ascii", "ignore")


def _with_crlf(data: bytes) -> bytes:
    is_normal = data.count(b"\n") == data.count(b"\r\n")
    return data if is_normal else data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _is_bounded(value: bytes) -> bool:
    return len(value) <= MAX_SIGNATURE_BYTES and MAX_WHITESPACE.search(value) is None


def _named(value: bytes, tag: bytes) -> str:
    """Return the value of a tag, which is shown: alphanumeric characters, dots, hyphens and underscores."""
    found = re.search(rb"(?:\A|;)\s{0,99}" + tag + rb"\s{0,99}=\s{0,99}([A-Za-z0-9._-]{1,253})", value)
    return found[1].decode().lower() if found else ""
