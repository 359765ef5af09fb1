"""SPF records (RFC 7208): read one, see whether it has our mechanisms, put them in."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Network, IPv6Network, NetmaskValueError, ip_network

VERSION = "v=spf1"
# Receivers give up on answers that are much larger (section 3.4).
MAX_LENGTH = 2048
TERM = re.compile(r"(?P<qualifier>[+?~-]?)(?P<name>[A-Za-z][A-Za-z0-9._-]*)(?P<rest>[:/=].*)?", re.DOTALL)
SPEC = r":[!-~]{1,253}"
CIDR = r"(/[0-9]{1,2})?(//[0-9]{1,3})?"
# What may follow the name of each mechanism (section 5).
RESTS = {
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


class SpfInvalid(ValueError):
    """Raised with a sentence that says what to change."""


@dataclass(frozen=True)
class Mechanism:
    """qualifier is one of + - ~ ?; rest is what follows the name, in lower case, with its colon or slash."""

    qualifier: str
    name: str
    rest: str = ""

    def __str__(self) -> str:
        return f"{self.qualifier.removeprefix('+')}{self.name}{self.rest}"

    @property
    def target(self) -> str:
        """Return the domain that it names, "" for the record's own."""
        return self.rest.removeprefix(":") if self.name in {"include", "exists"} else self.rest.split("/")[0][1:]

    def covers(self, other: "Mechanism") -> bool:
        """Tell whether a server that passes by the other one passes by this one, too."""
        if self.qualifier != "+" or self.name != other.name:
            return False
        if self.name not in NETWORKS:
            return self.rest == other.rest
        mine, theirs = (ip_network(one.rest[1:], strict=False) for one in (self, other))
        return theirs.subnet_of(mine)  # type: ignore[arg-type]  # of one family: the names are equal


@dataclass(frozen=True)
class Spf:
    """mechanisms are those that can match: whatever stands behind `all` never does."""

    mechanisms: tuple[Mechanism, ...]
    redirect: str | None = None

    @property
    def passes_all(self) -> bool:
        return Mechanism("+", "all") in self.mechanisms


def is_short(text: str) -> bool:
    return len(text) <= MAX_LENGTH


def is_spf(text: str) -> bool:
    return text[:6].lower() == VERSION and text[6:7] in {"", " "}


def looks_like_spf(text: str) -> bool:
    """Tell whether somebody meant an SPF record, whatever receivers make of it."""
    return VERSION in text[:40].lower().replace(" ", "")


def parse_spf(text: str) -> Spf:
    """Read a text that is_spf. Raises SpfInvalid."""
    if not is_short(text):
        raise SpfInvalid(f"The record has {len(text)} characters, more than receivers read.")
    found: list[Mechanism] = []
    redirect = None
    for word in _words(text):
        term = TERM.fullmatch(word)
        name = term["name"].lower() if term else ""
        if term and term["rest"] and term["rest"][0] == "=" and name not in RESTS:
            redirect = term["rest"][1:].lower() if name == "redirect" else redirect
            continue
        found.append(_mechanism(word))
    ends = [index for index, mechanism in enumerate(found) if mechanism.name == "all"]
    return Spf(tuple(found[: ends[0] + 1]) if ends else tuple(found), None if ends else redirect)


def parse_mechanisms(text: str) -> tuple[Mechanism, ...]:
    """Read what the setting SPF_MECHANISMS holds: mechanisms that pass, parted by blanks. Raises SpfInvalid."""
    if looks_like_spf(text):
        raise SpfInvalid("leave v=spf1 out; only the mechanisms are wanted.")
    mechanisms = tuple(_mechanism(word) for word in text.split())
    for mechanism in mechanisms:
        if mechanism.name == "all" or mechanism.qualifier != "+" or "%" in mechanism.rest:
            raise SpfInvalid(f"{mechanism} must be a mechanism that passes, without macros, and not all.")
    return mechanisms


def spf_record(mechanisms: Iterable[Mechanism]) -> str:
    """Return the record of a domain that has none: others' mail is a soft failure."""
    return " ".join([VERSION, *map(str, mechanisms), "~all"])


def not_covered(wanted: Iterable[Mechanism], by: Collection[Mechanism]) -> list[Mechanism]:
    return [one for one in wanted if not any(other.covers(one) for other in by)]


def merged(texts: Collection[str], added: Collection[Mechanism]) -> str:
    """Return one record with the terms of all of them, and the added mechanisms in front.

    Of several `all` the last one stays, a passing one as ~all. The terms are taken as they are written.
    """
    words = list(dict.fromkeys(word for text in texts for word in _words(text)))
    names = {word: word.lstrip("+-~?").lower() for word in words}
    ours = {f"{one.name}{one.rest}" for one in added}
    kept = [word for word in words if names[word] != "all" and names[word] not in ours]
    last = [word.lower() for word in words if names[word] == "all"][-1:]
    return " ".join([VERSION, *map(str, added), *kept, *("~all" if word in {"all", "+all"} else word for word in last)])


def _words(text: str) -> list[str]:
    """Return the terms of a record; only blanks part them (section 4.5)."""
    return [word for word in text[6:].split(" ") if word]


def _mechanism(word: str) -> Mechanism:
    term = TERM.fullmatch(word)
    name, rest = (term["name"].lower(), (term["rest"] or "").lower()) if term else ("", "")
    if not term or name not in RESTS:
        raise SpfInvalid(f"{word[:60]!r} is not an SPF mechanism; terms are all, include:, a, mx, ip4: or ip6:.")
    if not RESTS[name].fullmatch(rest):
        raise SpfInvalid(f"{word[:60]!r} is not written as SPF wants {name}.")
    if name in NETWORKS:
        _check_network(word, name, rest)
    return Mechanism(term["qualifier"] or "+", name, rest)


def _check_network(word: str, name: str, rest: str) -> None:
    try:
        NETWORKS[name](rest[1:], strict=False)
    except (AddressValueError, NetmaskValueError) as error:
        raise SpfInvalid(f"{word[:60]!r} is not an address or network of {name}.") from error
