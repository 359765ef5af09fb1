"""The libraries for SPF, DKIM, DMARC and ARC, with linear functions and our resolver in place of some of theirs.

- dkimpy removes white space with expressions that take quadratic time for a long line of spaces, and empty lines at the
  end one by one: 25 MiB of either would take minutes. It looks for each signed field in the whole header. The
  functions here give the same results.
- dkimpy takes a key of any size, with an exponent as large: one of 48 kB would hold the interpreter for hours. It reads
  a key for each signature, and makes bytes of a number one by one, which together took a fifth of a verification.
- pyspf queries the system's name servers; here the lookups of the message that its thread verifies.
- authheaders reads the public suffix list from a file for each comparison, and takes only alphanumeric characters and
  dots for a domain.
"""

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import authheaders
import dkim
import spf
from dkim import canonicalization, crypto

from core.lib.network.public_suffixes import organizational_domain
from receiving.reading.dns_lookups import DnsUnavailable, MessageLookups

# The largest exponent is that of OpenSSL for large keys.
MAX_KEY_RECORD = 8 * 1024
MAX_KEY_BITS = 8192
MAX_EXPONENT_BITS = 64
# Keys of a process by their records, each of at most MAX_KEY_RECORD bytes.
MAX_KEPT_KEYS = 256
_thread = threading.local()
_evaluate_key = dkim.evaluate_pk


@contextmanager
def use_lookups(lookups: MessageLookups) -> Iterator[None]:
    """Let pyspf query through these lookups, in this thread."""
    _thread.lookups, _thread.bodies = lookups, {}
    try:
        yield
    finally:
        del _thread.lookups, _thread.bodies


def _look_up(name: str, kind: str, *_: Any) -> list[tuple[tuple[str, str], Any]]:
    """Return records as pyspf reads them."""
    try:
        records = _thread.lookups.look_up(name, kind)
    except DnsUnavailable as error:
        raise spf.TempError(f"DNS {error}") from error
    if kind in {"TXT", "SPF"}:
        return [((name, kind), (text.encode("utf-8", "replace"),)) for text in records]
    return [((name, kind), record) for record in records]


def _compress_whitespace(content: bytes) -> bytes:
    spaced = content.replace(b"\t", b" ")
    # Each pass halves the longest run.
    while b"  " in spaced:
        spaced = spaced.replace(b"  ", b" ")
    return spaced


def _strip_trailing_whitespace(content: bytes) -> bytes:
    return _compress_whitespace(content).replace(b" \r\n", b"\r\n")


def _strip_trailing_lines(content: bytes) -> bytes:
    return content.rstrip(b"\r\n") + b"\r\n"


def _select_headers(headers: list[Any], include_headers: list[bytes]) -> list[Any]:
    """Return the fields that a signature signs, the lowest of a name first (RFC 6376, section 5.4.2)."""
    unsigned: dict[bytes, list[Any]] = {}
    for header in headers:
        unsigned.setdefault(header[0].lower(), []).append(header)
    return [unsigned[name].pop() for name in include_headers if unsigned.get(name)]


def _remember(canonicalize: Any) -> Any:
    """Return a function that keeps its result for the body of the message: several signatures cover the same one."""

    def remembered(body: bytes) -> bytes:
        bodies = vars(_thread).get("bodies", {})
        key = canonicalize, id(body)
        if key not in bodies:
            bodies[key] = body, canonicalize(body)
        result: bytes = bodies[key][1]
        return result

    return staticmethod(remembered)


def _int_to_bytes(number: int, length: int = -1) -> bytes:
    """Return the lowest bytes of a number, most significant first; all of them, and at least one, if length is -1."""
    if length < 0:
        return number.to_bytes(max((number.bit_length() + 7) // 8, 1), "big")
    return (number & ((1 << 8 * length) - 1)).to_bytes(length, "big")


def _bytes_to_int(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _evaluate_bounded_key(name: bytes, record: bytes | None) -> Any:
    """Return the key of a record. Raises KeyFormatError, and UnknownKeyTypeError for one that takes too long."""
    if record and len(record) > MAX_KEY_RECORD:
        raise dkim.UnknownKeyTypeError(b"rsa")
    return _evaluated(record) if record else _evaluate_key(name, record)


@functools.lru_cache(maxsize=MAX_KEPT_KEYS)
def _evaluated(record: bytes) -> Any:
    evaluated = _evaluate_key(b"", record)
    key, bits, kind, _ = evaluated
    if kind == b"rsa" and (bits > MAX_KEY_BITS or key["publicExponent"].bit_length() > MAX_EXPONENT_BITS):
        raise dkim.UnknownKeyTypeError(kind)
    return evaluated


dkim.evaluate_pk = _evaluate_bounded_key
crypto.int2str = _int_to_bytes
crypto.str2int = _bytes_to_int
spf.DNSLookup = _look_up
dkim.select_headers = _select_headers
canonicalization.compress_whitespace = _compress_whitespace
canonicalization.strip_trailing_whitespace = _strip_trailing_whitespace
canonicalization.strip_trailing_lines = _strip_trailing_lines
canonicalization.Simple.canonicalize_body = _remember(canonicalization.Simple.canonicalize_body)
canonicalization.Relaxed.canonicalize_body = _remember(canonicalization.Relaxed.canonicalize_body)
authheaders.get_org_domain = organizational_domain
authheaders.dmarc_lookup.get_org_domain = organizational_domain
authheaders.get_domain_part = lambda address: address.rpartition("@")[2].lower()

__all__ = ["authheaders", "canonicalization", "dkim", "spf", "use_lookups"]
