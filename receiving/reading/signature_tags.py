"""Tags of DKIM signatures, ARC fields and their keys: the rules of the standards that dkimpy does not check.

Those of RFC 6376, sections 3.2, 3.5, 3.6.1 and 6.1, RFC 8301, RFC 8616 and RFC 8617 (docs/decisions/0231).
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import idna

from receiving.reading.libraries import dkim

MAX_NAME_LENGTH = 253
# U-labels take more bytes than A-labels.
MAX_NAME_BYTES = 4 * MAX_NAME_LENGTH
FOLD = re.compile(rb"\r?\n(?=[ \t])")
CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
TAG_NAME = re.compile(rb"[A-Za-z][A-Za-z0-9_]*")
TIMESTAMP = re.compile(rb"[0-9]{1,12}")
DOMAIN = re.compile(r"(?:(?!-)[a-z0-9-]{1,63}(?<!-)\.)+(?!-)[a-z0-9-]{1,63}(?<!-)")
# Published selectors have underscores, which the grammar of section 3.1 does not allow. They are no identities.
SELECTOR = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
# Fields that occur once (RFC 5322, section 3.6; RFC 2045): a reader shows one of several.
SINGLE_FIELDS = frozenset(
    b"date from sender reply-to to cc bcc message-id in-reply-to references subject"
    b" mime-version content-type content-transfer-encoding".split()
)


@dataclass(frozen=True)
class Signature:
    """A DKIM-Signature, ARC-Message-Signature or ARC-Seal.

    tags: as dkimpy reads them; none of an invalid tag list.
    domain, selector: in lower case as A-labels, and empty if the tag is no domain name.
    """

    tags: Mapping[bytes, bytes]

    @cached_property
    def domain(self) -> str:
        return read_name(self.tags.get(b"d", b""), grammar=DOMAIN)

    @cached_property
    def selector(self) -> str:
        return read_name(self.tags.get(b"s", b""), grammar=SELECTOR)

    @property
    def is_named(self) -> bool:
        """Whether the name of the key is one that the DNS can have."""
        return bool(self.domain and self.selector) and len(self.key_name) <= MAX_NAME_LENGTH

    @property
    def key_name(self) -> str:
        return f"{self.selector}._domainkey.{self.domain}"

    @property
    def signed_fields(self) -> list[bytes]:
        """The names of h=, in lower case."""
        return [name.strip().lower() for name in self.tags.get(b"h", b"").split(b":")]

    @property
    def is_acceptable(self) -> bool:
        """Whether a DKIM signature may be verified: From is signed, and not with SHA-1 (RFC 8301, section 3.1)."""
        is_current = self.tags.get(b"a") != b"rsa-sha1"
        return self.is_named and is_current and b"from" in self.signed_fields and self._is_timed and self._is_identified

    def has_unsigned_duplicate(self, names: Sequence[bytes]) -> bool:
        """Return whether a field that occurs once is signed, and once more in the message (section 8.15).

        names: of the fields of the message, in lower case.
        """
        signed = self.signed_fields
        return any(0 < signed.count(name) < names.count(name) for name in SINGLE_FIELDS)

    def usable_key(self, record: str) -> bytes | None:
        """Return the key of a record for dkimpy, None if it must not verify this signature (section 6.1.2)."""
        key = read_tags(record.encode("ascii", "ignore"))
        kind, public = key.get(b"k", b"rsa"), key.get(b"p", b"")
        if not self._is_allowed(key, kind):
            return None
        plain = b"k=%b; p=%b" % (kind, public)
        try:
            dkim.evaluate_pk(self.key_name, plain)
        except Exception:  # noqa: BLE001 - the library raises many types for a malformed key
            return None
        return plain

    def _is_allowed(self, key: Mapping[bytes, bytes], kind: bytes) -> bool:
        algorithm, _, digest = self.tags.get(b"a", b"").partition(b"-")
        is_for_email = bool({b"*", b"email"} & _listed(key.get(b"s", b"*")))
        is_for_digest = digest in _listed(key.get(b"h", digest))
        is_for_identity = b"s" not in _listed(key.get(b"t", b"")) or self._identity_domain == self.domain
        is_of_kind = key.get(b"v", b"DKIM1") == b"DKIM1" and kind == algorithm
        return is_of_kind and is_for_email and is_for_digest and is_for_identity

    @property
    def _is_timed(self) -> bool:
        """Whether t= and x= are times in this order; dkimpy compares them with the clock."""
        times = [self.tags[name] for name in (b"t", b"x") if name in self.tags]
        return all(map(TIMESTAMP.fullmatch, times)) and (len(times) < 2 or int(times[0]) < int(times[1]))

    @property
    def _is_identified(self) -> bool:
        return f".{self._identity_domain}".endswith(f".{self.domain}")

    @property
    def _identity_domain(self) -> str:
        """The domain of i=, by default that of d=; empty if it is none."""
        if b"i" not in self.tags:
            return self.domain
        _, at, domain = self.tags[b"i"].rpartition(b"@")
        return read_name(domain, grammar=DOMAIN) if at else ""


def read_tags(value: bytes) -> dict[bytes, bytes]:
    """Return the tags of a list as dkimpy reads them; none if the list is invalid, such as one with a tag twice."""
    if CONTROL.search(FOLD.sub(b"", value.rstrip(b"\r\n"))):
        return {}
    with suppress(dkim.InvalidTagValueList, UnicodeError):
        value.decode()
        tags: dict[bytes, bytes] = dkim.parse_tag_value(value)
        return tags if all(map(TAG_NAME.fullmatch, tags)) else {}
    return {}


def read_name(value: bytes, *, grammar: re.Pattern[str]) -> str:
    """Return a name in lower case as A-labels; empty if it is not of the grammar.

    U-labels (RFC 8616) are those of IDNA 2008: without the mapping that reads several spellings as one name.
    """
    if len(value) > MAX_NAME_BYTES:
        return ""
    with suppress(UnicodeError):
        labels = value.decode().split(".")
        name = ".".join(label.lower() if label.isascii() else idna.alabel(label).decode() for label in labels)
        return name if len(name) <= MAX_NAME_LENGTH and grammar.fullmatch(name) else ""
    return ""


def _listed(value: bytes) -> set[bytes]:
    return {item.strip() for item in value.split(b":")}
