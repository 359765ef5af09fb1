"""Email addresses in requests: `ada@example.com` or `Ada L <ada@example.com>`.

One form of each address is stored and compared: the local part in NFC, the domain as lower-case A-labels.
"""

import functools
import re
import unicodedata
from dataclasses import dataclass
from typing import Any

import idna
from email_validator import SPECIAL_USE_DOMAIN_NAMES, EmailNotValidError, validate_email

MAX_LENGTH = 512
# Domains are resolved when an email is sent, not here; test_environment allows the simulator's .test domain.
VALIDATOR_OPTIONS: Any = {
    "check_deliverability": False,
    "globally_deliverable": False,
    "allow_smtputf8": True,
    "strict": True,
    "test_environment": True,
}
# The specials of RFC 5322: a display name with one of them is quoted.
SPECIALS = re.compile(r'[()<>\[\]:;@\\,."]')
# Line and paragraph separators end a line in some mail clients; bidi controls can disguise a name.
FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# Matches nearly every address; email_validator gives the same result, ten times slower.
ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
PLAIN = re.compile(
    rf"(?=[^@]{{1,64}}@)(?P<local>{ATOM}(?:\.{ATOM})*)@(?P<domain>(?:{LABEL}\.)+(?P<tld>[A-Za-z]{{2,63}}))"
)
# The text between commas, except for commas within quotes. Every character matches in one way only: linear time.
ITEM = re.compile(r'(?:[^",\\]|\\(?:.|\Z)|"(?:[^"\\]|\\(?:.|\Z))*(?:"|\Z))+', re.DOTALL)
# Common mistakes.
SEVERAL = re.compile(r"@[^@,;]*[,;][^@]*@")
UNBRACKETED = re.compile(r"(?P<name>[^<>@]*[^<>@\s])\s*(?:\s|<)(?P<spec>[^\s<>@]+@[^\s<>@]+)")
MAX_SPEC_LENGTH = 254
MAX_LOCAL_LENGTH = 64
SPECIAL_TLDS = frozenset(name.rpartition(".")[2] for name in SPECIAL_USE_DOMAIN_NAMES)


class InvalidAddress(ValueError):
    """Raised with a message for a text that is not exactly one address."""


@dataclass(frozen=True)
class Address:
    """A mailbox: display name, possibly empty, and addr-spec with the domain as A-labels."""

    name: str
    spec: str

    @property
    def domain(self) -> str:
        return self.spec.rpartition("@")[2]

    def __str__(self) -> str:
        if not self.name:
            return self.spec
        return f"{quote_name(self.name)} <{self.spec}>"


def parse_address(text: str) -> Address:
    """Parse one address that every mail host supports. Raises InvalidAddress."""
    address = parse_recipient(text)
    if not address.spec.isascii():
        raise InvalidAddress(f"{text[:80]!r}: only recipients may have other than ASCII characters before the @.")
    return address


def parse_recipient(text: str) -> Address:
    """Parse one address, which may be internationalized (RFC 6531). Raises InvalidAddress."""
    if len(text) > MAX_LENGTH:
        raise InvalidAddress(f"An address must have at most {MAX_LENGTH} characters.")
    if FORBIDDEN.search(text):
        raise InvalidAddress("An address must not contain control characters.")
    name, spec = _split(text.strip())
    return Address(name=unicodedata.normalize("NFC", name), spec=_spec(spec))


@functools.lru_cache(maxsize=1024)
def read_stored_address(text: str) -> Address:
    """Return an address from the text that it was stored as, str(Address), without checking it again."""
    return Address(*_split(text))


def normalize_address(address: str) -> str:
    """Return an addr-spec in the form in which addresses are compared: without case."""
    return unicodedata.normalize("NFC", address.casefold())


def normalize_search(text: str) -> str:
    """Return a text to search for in addresses and subjects; a domain after an @ is stored as A-labels."""
    folded = normalize_address(text)
    local, at, domain = folded.rpartition("@")
    if not at or domain.isascii():
        return folded
    try:
        return f"{local}@{idna.encode(domain, uts46=True).decode()}"
    except idna.IDNAError:
        return folded


def parse_address_list(text: str) -> list[Address]:
    """Parse addresses separated by commas; a comma in a quoted name separates nothing. Raises InvalidAddress."""
    return [parse_address(part) for part in split_address_list(text)]


def split_address_list(text: str) -> list[str]:
    """Return the unparsed addresses of a list separated by commas."""
    return [part.strip() for part in ITEM.findall(text) if part.strip()]


def quote_name(name: str) -> str:
    """Return a display name as written in front of an address, quoted if necessary."""
    if not SPECIALS.search(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _split(text: str) -> tuple[str, str]:
    if not text.endswith(">"):
        return "", text
    name, bracket, spec = text[:-1].rpartition("<")
    if not bracket:
        raise InvalidAddress(f"{text[:80]!r} is not an email address: the < before the address is missing.")
    name = name.strip()
    if len(name) > 1 and name[0] == name[-1] == '"':
        name = re.sub(r"\\(.)", r"\1", name[1:-1])
    elif SEVERAL.search(text):
        raise InvalidAddress(f"{text[:80]!r} is not an email address: {_advice(text)}")
    return name, spec.strip()


def _spec(text: str) -> str:
    """Return the normalized addr-spec: the local part as given, the domain as lower-case A-labels."""
    plain = PLAIN.fullmatch(text)
    if plain and len(text) <= MAX_SPEC_LENGTH and plain["tld"].lower() not in SPECIAL_TLDS and "--" not in text:
        return f"{plain['local']}@{plain['domain'].lower()}"
    try:
        validated = validate_email(text, **VALIDATOR_OPTIONS)
    except EmailNotValidError as error:
        raise InvalidAddress(f"{text[:80]!r} is not an email address: {_advice(text) or error}") from error
    domain = (validated.ascii_domain or validated.domain).lower()
    if "." not in domain:
        raise InvalidAddress(f"{text[:80]!r} is not an email address: the domain has no dot.")
    spec = f"{validated.local_part}@{domain}"
    # RFC 5321, section 4.5.3.1, counts octets.
    if len(spec.encode()) > MAX_SPEC_LENGTH or len(validated.local_part.encode()) > MAX_LOCAL_LENGTH:
        raise InvalidAddress(f"{text[:80]!r} is not an email address: it is too long.")
    return spec


def _advice(text: str) -> str:
    """Return how to correct a common mistake in an address, or an empty string."""
    if SEVERAL.search(text):
        return "it contains several addresses. Give each address as a separate string, several of them as a list."
    if text.lower().startswith("mailto:"):
        return "omit mailto:."
    unbracketed = UNBRACKETED.fullmatch(text)
    return f"write {unbracketed['name']} <{unbracketed['spec']}>." if unbracketed else ""
