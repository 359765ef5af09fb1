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

from core.lib.coded_texts import CodedText

MAX_LENGTH = 512
# Domains are resolved when an email is sent, not here; test_environment allows the simulator's .test domain.
VALIDATOR_OPTIONS: Any = {
    "check_deliverability": False,
    "globally_deliverable": False,
    "allow_smtputf8": True,
    "strict": True,
    "test_environment": True,
    # Quotes that a local part does not need are removed; one that needs them is refused below.
    "allow_quoted_local": True,
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
QUOTED_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
# The text between separators, except for those within quotes. Every character matches in one way only: linear time.
ITEM = re.compile(r'(?:[^",;\\]|\\(?:.|\Z)|"(?:[^"\\]|\\(?:.|\Z))*(?:"|\Z))+', re.DOTALL)
# Common mistakes.
SEVERAL = re.compile(r"@[^@,;]*[,;][^@]*@")
UNBRACKETED = re.compile(r"(?P<name>[^<>@]*[^<>@\s])\s*(?:\s|<)(?P<spec>[^\s<>@\"]+@[^\s<>@\"]+)")
MAX_SPEC_LENGTH = 254
MAX_LOCAL_LENGTH = 64
# Our codes by the errors of email_validator, without the characters that some of them list.
VALIDATOR_ERRORS = {
    "An email address must have an @-sign.": "lib.at_sign_missing",
    "There must be something before the @-sign.": "lib.local_part_missing",
    "There must be something after the @-sign.": "lib.domain_missing",
    "The part after the @-sign is not valid. It should have a period.": "lib.domain_without_period",
    "The part after the @-sign is not valid. It is not within a valid top-level domain.": "lib.domain_not_top_level",
    "The part after the @-sign contains invalid characters": "lib.domain_characters",
    "The email address contains invalid characters before the @-sign": "lib.local_part_characters",
}
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
        raise InvalidAddress(CodedText("lib.address_not_ascii", text=repr(text[:80])))
    return address


def parse_recipient(text: str) -> Address:
    """Parse one address, which may be internationalized (RFC 6531). Raises InvalidAddress."""
    if len(text) > MAX_LENGTH:
        raise InvalidAddress(CodedText("lib.address_too_long", limit=MAX_LENGTH))
    if FORBIDDEN.search(text):
        raise InvalidAddress(CodedText("lib.address_controls"))
    name, spec = split_name(text.strip())
    return Address(name=unicodedata.normalize("NFC", name), spec=_spec(spec))


@functools.lru_cache(maxsize=1024)
def read_stored_address(text: str) -> Address:
    """Return an address from the text that it was stored as, str(Address), without checking it again."""
    return Address(*split_name(text))


def normalize_address(address: str) -> str:
    """Return an addr-spec in the form in which addresses are compared: without case."""
    return unicodedata.normalize("NFC", address.casefold())


def normalize_search(text: str) -> str:
    """Return a text to search for in normalized addresses and subjects."""
    return with_a_labels(normalize_address(text))


def with_a_labels(text: str) -> str:
    """Return a text to search for in addresses; a domain after an @ is stored as A-labels."""
    local, at, domain = text.rpartition("@")
    if not at or domain.isascii():
        return text
    try:
        return f"{local}@{idna.encode(domain, uts46=True).decode()}"
    except idna.IDNAError:
        return text


def parse_address_list(text: str) -> list[Address]:
    """Parse the addresses of a list (see split_address_list). Raises InvalidAddress."""
    return [parse_address(part) for part in split_address_list(text)]


def split_address_list(text: str) -> list[str]:
    """Return the unparsed addresses of a list separated by commas or semicolons, without empty entries.

    A separator in a quoted name separates nothing, nor does one in an unquoted name, such as
    `Lovelace, Ada <ada@example.com>`: the text in front of it is no address.
    """
    spans: list[tuple[int, int]] = []
    for item in ITEM.finditer(text):
        start, end = item.span()
        if item[0].rstrip().endswith(">"):
            while spans and "@" not in text[slice(*spans[-1])]:
                start, _ = spans.pop()
        if item[0].strip():
            spans.append((start, end))
    return [text[start:end].strip() for start, end in spans]


def quote_name(name: str) -> str:
    """Return a display name as written in front of an address, quoted if necessary."""
    if not SPECIALS.search(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def split_name(text: str) -> tuple[str, str]:
    """Return the display name and the unchecked address of a text. Raises InvalidAddress."""
    if not text.endswith(">"):
        return "", text
    name, bracket, spec = text[:-1].rpartition("<")
    if not bracket:
        raise _not_an_address(text, CodedText("lib.bracket_missing"))
    name = name.strip()
    if QUOTED_STRING.fullmatch(name):
        name = re.sub(r"\\(.)", r"\1", name[1:-1])
    elif SEVERAL.search(text):
        raise _not_an_address(text, _advice(text))
    return name, spec.strip()


def _spec(text: str) -> str:
    """Return the normalized addr-spec: the local part as given, the domain as lower-case A-labels."""
    plain = PLAIN.fullmatch(text)
    if plain and len(text) <= MAX_SPEC_LENGTH and plain["tld"].lower() not in SPECIAL_TLDS and "--" not in text:
        return f"{plain['local']}@{plain['domain'].lower()}"
    try:
        validated = validate_email(text, **VALIDATOR_OPTIONS)
    except EmailNotValidError as error:
        raise _not_an_address(text, _advice(text) or _validator_error(error)) from error
    if validated.local_part.startswith('"'):
        raise _not_an_address(text, CodedText("lib.local_part_quoted"))
    domain = (validated.ascii_domain or validated.domain).lower()
    if "." not in domain:
        raise _not_an_address(text, CodedText("lib.domain_without_dot"))
    spec = f"{validated.local_part}@{domain}"
    # RFC 5321, section 4.5.3.1, counts octets.
    if len(spec.encode()) > MAX_SPEC_LENGTH or len(validated.local_part.encode()) > MAX_LOCAL_LENGTH:
        raise _not_an_address(text, CodedText("lib.too_long"))
    return spec


def _not_an_address(text: str, error: str) -> InvalidAddress:
    return InvalidAddress(CodedText("lib.not_an_address", text=repr(text[:80]), error=error))


def _validator_error(error: EmailNotValidError) -> str:
    """Return the message for an error of email_validator; its own text for a rare one."""
    text, _, characters = str(error).partition(": ")
    code = VALIDATOR_ERRORS.get(text)
    return CodedText(code, characters=characters.removesuffix(".")) if code else str(error)


def _advice(text: str) -> str:
    """Return how to correct a common mistake in an address, or an empty string."""
    if SEVERAL.search(text):
        return CodedText("lib.several_addresses")
    if text.lower().startswith("mailto:"):
        return CodedText("lib.omit_mailto")
    unbracketed = UNBRACKETED.fullmatch(text)
    if unbracketed is None:
        return ""
    return CodedText("lib.write_address", address=f"{unbracketed['name']} <{unbracketed['spec']}>")
