"""SPF syntax (RFC 7208): parse a record, compare its mechanisms with required ones, and add those."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Network, IPv6Network, NetmaskValueError, ip_network

from core.lib.coded_texts import CodedText

VERSION = "v=spf1"
# Receivers reject much larger answers (section 3.4).
MAX_LENGTH = 2048
TERM = re.compile(r"(?P<qualifier>[+?~-]?)(?P<name>[A-Za-z][A-Za-z0-9._-]*)(?P<argument>[:/=].*)?", re.DOTALL)
SPEC = r":[!-~]{1,253}"
CIDR = r"(/[0-9]{1,2})?(//[0-9]{1,3})?"
# The argument allowed after the name of each mechanism (section 5).
ARGUMENTS = {
    "all": re.compile(""),
    "include": re.compile(SPEC),
    "exists": re.compile(SPEC),
    "a": re.compile(rf"(:[!-.0-~]{{1,253}})?{CIDR}"),
    "mx": re.compile(rf"(:[!-.0-~]{{1,253}})?{CIDR}"),
    "ptr": re.compile(rf"({SPEC})?"),
    "ip4": re.compile(r":[0-9.]{7,15}(/[0-9]{1,2})?"),
    "ip6": re.compile(r":[0-9A-Fa-f:.]{2,45}(/[0-9]{1,3})?"),
}
NETWORKS: dict[str, type[IPv4Network] | type[IPv6Network]] = {"ip4": IPv4Network, "ip6": IPv6Network}


class InvalidSpf(ValueError):
    """Raised for an invalid record or mechanism; the message explains how to fix it."""


@dataclass(frozen=True)
class SpfMechanism:
    """A mechanism of an SPF record.

    qualifier: one of + - ~ ?.
    argument: the text after the name, in lower case, with its colon or slash.
    """

    qualifier: str
    name: str
    argument: str = ""

    def __str__(self) -> str:
        return f"{self.qualifier.removeprefix('+')}{self.name}{self.argument}"

    @property
    def target(self) -> str:
        """Return the domain that the mechanism names, "" for the domain of the record."""
        if self.name in {"include", "exists"}:
            return self.argument.removeprefix(":")
        return self.argument.split("/")[0][1:]

    def covers(self, other: "SpfMechanism") -> bool:
        """Check that every server that passes the other mechanism also passes this one."""
        if self.qualifier != "+" or self.name != other.name:
            return False
        if self.name not in NETWORKS:
            return self.argument == other.argument
        own, others = (ip_network(term.argument[1:], strict=False) for term in (self, other))
        return others.subnet_of(own)  # type: ignore[arg-type]  # same address family: the names are equal


@dataclass(frozen=True)
class SpfRecord:
    """mechanisms: those that can match; terms after `all` never do."""

    mechanisms: tuple[SpfMechanism, ...]
    redirect: str | None = None

    @property
    def passes_all(self) -> bool:
        return SpfMechanism("+", "all") in self.mechanisms


def has_valid_length(text: str) -> bool:
    return len(text) <= MAX_LENGTH


def is_spf(text: str) -> bool:
    return text[:6].lower() == VERSION and text[6:7] in {"", " "}


def looks_like_spf(text: str) -> bool:
    """Check for a text intended as an SPF record, even if receivers do not accept it."""
    return VERSION in text[:40].lower().replace(" ", "")


def parse_spf(text: str) -> SpfRecord:
    """Parse a text for which is_spf is true. Raises InvalidSpf."""
    if not has_valid_length(text):
        raise InvalidSpf(CodedText("domains.record_too_long", count=len(text), limit=MAX_LENGTH))
    mechanisms: list[SpfMechanism] = []
    redirect = None
    for word in _split_terms(text):
        term = TERM.fullmatch(word)
        name = term["name"].lower() if term else ""
        if term and term["argument"] and term["argument"][0] == "=" and name not in ARGUMENTS:
            redirect = term["argument"][1:].lower().removesuffix(".") if name == "redirect" else redirect
            continue
        mechanisms.append(_parse_mechanism(word))
    ends = [index for index, mechanism in enumerate(mechanisms) if mechanism.name == "all"]
    return SpfRecord(tuple(mechanisms[: ends[0] + 1]) if ends else tuple(mechanisms), None if ends else redirect)


def parse_mechanisms(text: str) -> tuple[SpfMechanism, ...]:
    """Parse the setting SPF_MECHANISMS: passing mechanisms, separated by spaces. Raises InvalidSpf."""
    if looks_like_spf(text):
        raise InvalidSpf("leave out v=spf1; list only the mechanisms.")
    mechanisms = tuple(_parse_mechanism(word) for word in text.split())
    for mechanism in mechanisms:
        if mechanism.name == "all" or mechanism.qualifier != "+" or "%" in mechanism.argument:
            raise InvalidSpf(f"{mechanism} is not allowed: do not use all, macros or the qualifiers - ~ ?.")
    return mechanisms


def build_spf_record(mechanisms: Iterable[SpfMechanism]) -> str:
    """Return the value for a domain without a record: ~all makes other servers a soft failure."""
    return " ".join([VERSION, *map(str, mechanisms), "~all"])


def find_uncovered(required: Iterable[SpfMechanism], *, published: Collection[SpfMechanism]) -> list[SpfMechanism]:
    """Return the required mechanisms that no published one covers."""
    return [term for term in required if not any(other.covers(term) for other in published)]


def merge_records(texts: Collection[str], added: Collection[SpfMechanism]) -> str:
    """Return one record with the added mechanisms, followed by the terms of all records as written.

    The last `all` is kept; a passing one becomes ~all.
    """
    words = list(dict.fromkeys(word for text in texts for word in _split_terms(text)))
    names = {word: _without_final_dot(word.lstrip("+-~?").lower()) for word in words}
    added_names = {f"{term.name}{term.argument}" for term in added}
    kept = [word for word in words if names[word] != "all" and names[word] not in added_names]
    last = [word.lower() for word in words if names[word] == "all"][-1:]
    return " ".join([VERSION, *map(str, added), *kept, *("~all" if word in {"all", "+all"} else word for word in last)])


def _split_terms(text: str) -> list[str]:
    """Return the terms of a record; only spaces separate them (section 4.5)."""
    return [word for word in text[6:].split(" ") if word]


def _parse_mechanism(word: str) -> SpfMechanism:
    term = TERM.fullmatch(word)
    name, argument = (term["name"].lower(), (term["argument"] or "").lower()) if term else ("", "")
    if not term or name not in ARGUMENTS:
        raise InvalidSpf(CodedText("domains.spf_not_a_mechanism", term=repr(word[:60])))
    if not ARGUMENTS[name].fullmatch(argument):
        raise InvalidSpf(CodedText("domains.spf_invalid_mechanism", term=repr(word[:60]), name=name))
    if name in NETWORKS:
        _check_network(word, name, argument)
        return SpfMechanism(term["qualifier"] or "+", name, argument)
    return SpfMechanism(term["qualifier"] or "+", name, _without_final_dot(argument))


def _without_final_dot(term: str) -> str:
    """Return a term or its argument without the dot that may end a name (section 7.1), also before a prefix length."""
    target, slash, length = term.partition("/")
    return f"{target.removesuffix('.')}{slash}{length}"


def _check_network(word: str, name: str, argument: str) -> None:
    try:
        NETWORKS[name](argument[1:], strict=False)
    except (AddressValueError, NetmaskValueError) as error:
        raise InvalidSpf(CodedText("domains.spf_invalid_network", term=repr(word[:60]), name=name)) from error
