"""DMARC policies: write one, judge one, find the one that counts (RFC 9989; the older RFC 7489 is read as well)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from domains.record_checks.tags import TagsInvalid, parse_tags

VERSION = "v=DMARC1"
WALK_LIMIT = 8
MAX_LENGTH = 2048
POLICY = re.compile("none|quarantine|reject", re.IGNORECASE)
ALIGNMENT = re.compile("[rs]", re.IGNORECASE)
URI = r"mailto:[^\s,!@]+@[A-Za-z0-9.-]+(![0-9]+[kmgt]?)?"
URIS = re.compile(rf"{URI}(\s*,\s*{URI})*", re.IGNORECASE)
# pct, rf and ri are of RFC 7489 alone; receivers of today skip them.
RULES = {
    "p": (POLICY, "none, quarantine or reject"),
    "sp": (POLICY, "none, quarantine or reject"),
    "np": (POLICY, "none, quarantine or reject"),
    "adkim": (ALIGNMENT, "r or s"),
    "aspf": (ALIGNMENT, "r or s"),
    "psd": (re.compile("[ynu]", re.IGNORECASE), "y, n or u"),
    "t": (re.compile("[yn]", re.IGNORECASE), "y or n"),
    "fo": (re.compile(r"[01ds](\s*:\s*[01ds])*", re.IGNORECASE), "0, 1, d or s, parted by colons"),
    "pct": (re.compile("[0-9]|[1-9][0-9]|100"), "a number from 0 to 100"),
    "rua": (URIS, "addresses such as mailto:dmarc@example.com, parted by commas"),
    "ruf": (URIS, "addresses such as mailto:dmarc@example.com, parted by commas"),
}


@dataclass(frozen=True)
class Policy:
    """A policy and the name that it was found at."""

    name: str
    text: str


def dmarc_record(report_addresses: Sequence[str]) -> str:
    """Return the record of a domain that has none: it only watches, and reports where addresses are given."""
    reports = ",".join(f"mailto:{address.removeprefix('mailto:')}" for address in report_addresses)
    return f"{VERSION}; p=none;" + (f" rua={reports};" if reports else "")


def is_dmarc(text: str) -> bool:
    """Tell whether receivers take a text for a policy: others are discarded (RFC 9989, section 4.10)."""
    name, _, value = text.partition(";")[0].partition("=")
    return name.strip() == "v" and value.strip() == "DMARC1"


def looks_like_dmarc(text: str) -> bool:
    return "v=dmarc" in text[:40].lower().replace(" ", "")


def dmarc_fault(texts: Sequence[str]) -> str | None:
    """Return what to change in the texts at a _dmarc name; None for one good policy. One looks like a policy."""
    policies = [text for text in texts if is_dmarc(text)]
    if len(policies) > 1:
        return f"There are {len(policies)} DMARC records; receivers count none of them. Leave one."
    if not policies:
        return "The record must begin with v=DMARC1; and hold no quotation marks or backslashes of its own."
    if len(policies[0]) > MAX_LENGTH:
        return f"The record has {len(policies[0])} characters, more than receivers read."
    try:
        tags = parse_tags(policies[0])
    except TagsInvalid as error:
        return f"The record cannot be read: {error}"
    if "p" not in tags and "rua" not in tags:
        return "The record has no p=; add p=none to begin with."
    return next(_wrong_tags(tags), None)


def _wrong_tags(tags: Mapping[str, str]) -> Iterator[str]:
    for name, value in tags.items():
        rule = RULES.get(name.lower())
        if rule and not rule[0].fullmatch(value):
            yield f"{name}={value[:60]} must be {rule[1]}."


def names_above(domain: str) -> list[str]:
    """Return the names of the tree walk above a domain, nearest first: at most eight look-ups with its own."""
    labels = domain.split(".")
    # From eight labels on the walk jumps to the last seven, so that deep names cost no more.
    first = max(1, len(labels) - (WALK_LIMIT - 1))
    return [".".join(labels[index:]) for index in range(first, len(labels))]


def covering_policy(above: Sequence[Policy]) -> Policy | None:
    """Return the policy that counts for a domain without its own, by the tree walk (RFC 9989, section 4.10).

    above: the policies found on the walk, nearest first, at most one a name. psd=n ends the walk; else the
    highest one counts, that of a public suffix (psd=y) only where there is no other.
    """
    ends = [policy for policy in above if _psd(policy) == "n"]
    ordinary = [policy for policy in above if _psd(policy) != "y"]
    return next(iter([*ends[:1], *ordinary[-1:], *above[-1:]]), None)


def _psd(policy: Policy) -> str:
    try:
        return parse_tags(policy.text).get("psd", "u").lower()
    except TagsInvalid:
        return "u"
