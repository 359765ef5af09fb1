"""Domain names as DNS and SMTP write them."""

import functools
import re

import idna
from publicsuffixlist import PublicSuffixList

from domains.providers import PROVIDERS

LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
MAX_LENGTH = 253


class InvalidDomainName(ValueError):
    """Raised with a sentence for a text that is not a full domain name."""


def a_label(text: str) -> str:
    """Return the lower-case ASCII form of a domain name (IDNA 2008, UTS 46). Raises InvalidDomainName."""
    try:
        name = idna.encode(text.strip().rstrip("."), uts46=True).decode().lower()
    except idna.IDNAError as error:
        raise InvalidDomainName(f"{text[:80]!r} is not a domain name.") from error
    labels = name.split(".")
    if len(name) > MAX_LENGTH or len(labels) < 2 or not all(LABEL.fullmatch(label) for label in labels):
        raise InvalidDomainName(f"{text[:80]!r} is not a domain name such as mail.example.com.")
    if labels[-1].isdigit():
        raise InvalidDomainName(f"{text[:80]!r} is an address, not a domain name.")
    return name


def registrable_name(text: str) -> str:
    """Return the A-label of a domain that somebody can own and send from. Raises InvalidDomainName."""
    name = a_label(text)
    if _suffixes().is_public(name):
        raise InvalidDomainName(f"{name} is a public suffix, below which others register; register a name of your own.")
    if name in PROVIDERS:
        raise InvalidDomainName(f"{name} is a public mail provider; register a domain whose DNS you keep.")
    return name


def organisational_domain(name: str) -> str:
    """Return the name right below the public suffix: whoever has it keeps the DNS of all names below it."""
    return _suffixes().privatesuffix(name) or name


@functools.cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()
