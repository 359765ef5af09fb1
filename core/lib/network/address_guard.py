"""Guard for outbound connections: the addresses and host names that the service may connect to.

Every connection to a target that users can choose (webhook URLs, MX hosts, relays) is checked here first.
`ipaddress.is_global` is no substitute: on Python 3.11 it counts NAT64, 6to4, v4-compatible and multicast addresses as
global, and each of those can lead to the internal network.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import (
    AddressValueError,
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class TargetRefused(Exception):
    """Raised for a target that must not be connected to.

    The text may be shown to users: it does not reveal the resolved addresses, so it cannot be used to explore the
    internal network. `reason` is for the log only.
    """

    text = "target not allowed"

    def __init__(self, reason: str) -> None:
        super().__init__(self.text)
        self.reason = reason


class AddressRefused(TargetRefused):
    """Raised when at least one address is not a public unicast address."""

    text = "address not allowed"


class HostRefused(TargetRefused):
    """Raised for a host that is neither a public DNS name nor an address literal in its normal form."""

    text = "host not allowed"


# The first matching row gives the reason, so single addresses come before their networks.
REFUSED_NETWORKS: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "this network, RFC 791"),
        ("100.100.100.200/32", "Alibaba Cloud metadata"),
        ("100.64.0.0/10", "shared by carrier NAT, RFC 6598"),
        # Globally routable by number, but inside Azure it is the host's control channel.
        ("168.63.129.16/32", "Azure wire server"),
        ("169.254.169.254/32", "metadata of AWS, Azure, Google Cloud and others"),
        ("169.254.170.2/32", "AWS container credentials"),
        ("169.254.0.0/16", "link local, RFC 3927"),
        ("192.0.0.192/32", "Oracle Cloud metadata"),
        ("192.0.0.0/24", "protocol assignments, RFC 6890"),
        ("192.0.2.0/24", "documentation, RFC 5737"),
        ("192.31.196.0/24", "AS112 sinkhole, RFC 7535"),
        ("192.52.193.0/24", "multicast tunnelling, RFC 7450"),
        ("192.88.99.0/24", "6to4 relays, RFC 7526"),
        ("192.175.48.0/24", "AS112 sinkhole, RFC 7534"),
        ("198.18.0.0/15", "benchmarks, RFC 2544"),
        ("198.51.100.0/24", "documentation, RFC 5737"),
        ("203.0.113.0/24", "documentation, RFC 5737"),
        ("224.0.0.0/4", "multicast, RFC 5771"),
        ("255.255.255.255/32", "broadcast, RFC 919"),
        ("240.0.0.0/4", "reserved, RFC 1112"),
        # Inside 2000::/3: registered for another use, or embedding an IPv4 address.
        ("2001::/32", "Teredo, RFC 4380"),
        ("2001::/23", "protocol assignments, RFC 2928"),
        ("2001:db8::/32", "documentation, RFC 3849"),
        ("2002::/16", "6to4, RFC 3056"),
        ("2620:4f:8000::/48", "AS112 sinkhole, RFC 7534"),
        ("3fff::/20", "documentation, RFC 9637"),
        # Outside 2000::/3 everything is refused anyway; these rows only name the reason. The two cloud rows do more:
        # they stay refused where private networks are allowed.
        ("::/128", "unspecified, RFC 4291"),
        ("64:ff9b::/96", "NAT64, RFC 6052"),
        ("64:ff9b:1::/48", "local NAT64, RFC 8215"),
        ("::ffff:0:0:0/96", "translated IPv4, RFC 2765"),
        ("100::/64", "discard, RFC 6666"),
        ("100:0:0:1::/64", "dummy prefix, RFC 9780"),
        ("5f00::/16", "segment routing, RFC 9602"),
        ("fd00:ec2::/32", "AWS instance services"),
        ("fd20:ce::254/128", "Google Cloud metadata"),
        ("fe80::/10", "link local, RFC 4291"),
        ("fec0::/10", "site local, RFC 3879"),
        ("ff00::/8", "multicast, RFC 4291"),
    )
)

# Allowed by a guard with `allow_private`: connections within one machine or one office.
PRIVATE_NETWORKS: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), reason)
    for network, reason in (
        ("127.0.0.0/8", "loopback, RFC 1122"),
        ("::1/128", "loopback, RFC 4291"),
        ("10.0.0.0/8", "private, RFC 1918"),
        ("172.16.0.0/12", "private, RFC 1918"),
        ("192.168.0.0/16", "private, RFC 1918"),
        ("fc00::/7", "unique local, RFC 4193"),
    )
)

GLOBAL_UNICAST = IPv6Network("2000::/3")

# RFC 5214, section 6.1: the low half of the address is one of these two identifiers, then an IPv4 address. They mark a
# tunnel under any prefix, so no network in the table covers them.
ISATAP_IDENTIFIERS = frozenset({0x00005EFE, 0x02005EFE})

# Names by suffix, in whole labels.
REFUSED_NAMES: tuple[tuple[str, str], ...] = (
    ("metadata.google.internal", "Google Cloud metadata"),
    ("onion", "Tor services, RFC 7686"),
)
PRIVATE_NAMES: tuple[tuple[str, str], ...] = (
    ("localhost", "loopback, RFC 6761"),
    ("localdomain", "this machine in host files"),
    ("local", "multicast DNS, RFC 6762"),
    ("internal", "reserved by ICANN for private use"),
    ("home.arpa", "home networks, RFC 8375"),
)

# Underscores are outside RFC 1123, but the DNS allows them (RFC 2181, section 11) and some MX hosts have them.
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
# No top-level domain is a number, but inet_aton() accepts decimal, octal and hex parts: a host that ends in a number is
# an address or imitates one.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_NAME_LENGTH = 253


@dataclass(frozen=True, kw_only=True)
class Guard:
    """Decides which targets may be connected to.

    own: public addresses of this machine, refused because services on them may trust local clients. They stay
        refused with `allow_private`; a trial on one machine passes none.
    allow_private: loopback and private networks and their names are allowed, for trials on one machine. Link-local
        addresses, which serve cloud credentials, stay refused.
    """

    own: frozenset[Address] = frozenset()
    allow_private: bool = False

    def refusal_reason(self, address: Address) -> str | None:
        """Return the reason to refuse the address, or None if it is allowed."""
        address = unwrap(address)
        if address in self.own:
            return "own address"
        if reason := _network_reason(address, REFUSED_NETWORKS) or _format_reason(address):
            return reason
        if reason := _network_reason(address, PRIVATE_NETWORKS):
            return self._private_reason(reason)
        is_global_unicast = isinstance(address, IPv4Address) or address in GLOBAL_UNICAST
        return None if is_global_unicast else "outside global unicast, RFC 4291"

    def check_addresses(self, answers: Iterable[Address]) -> tuple[Address, ...]:
        """Return the addresses to connect to, IPv4-mapped ones as IPv4.

        A single refused address refuses all: a DNS answer that mixes public and private addresses is an attempt to
        reach the private one. Raises AddressRefused for a refused address and for an empty answer.
        """
        addresses = tuple(unwrap(address) for address in answers)
        if not addresses:
            raise AddressRefused("no address")
        for address in addresses:
            if reason := self.refusal_reason(address):
                raise AddressRefused(f"{address}: {reason}")
        return addresses

    def check_host(self, host: str) -> Address | str:
        """Return the host as a checked address, or as a DNS name whose addresses are not checked yet.

        host: the host of a URL or an MX record; an IPv6 literal with or without brackets. Callers must connect to the
        returned value, never to the argument, which another parser may read differently.
        Raises HostRefused or AddressRefused.
        """
        target = parse_host(host)
        if not isinstance(target, str):
            return self.check_addresses([target])[0]
        if reason := self._name_reason(target):
            raise HostRefused(f"{target}: {reason}")
        return target

    def _name_reason(self, name: str) -> str | None:
        if reason := _suffix_reason(name, REFUSED_NAMES):
            return reason
        if reason := _suffix_reason(name, PRIVATE_NAMES):
            return self._private_reason(reason)
        return None if "." in name else self._private_reason("a single-label name")

    def _private_reason(self, reason: str) -> str | None:
        return None if self.allow_private else reason


def unwrap(address: Address) -> Address:
    """Return the IPv4 address inside `::ffff:0:0/96`, any other address unchanged.

    The kernel connects a mapped address over IPv4 (RFC 3493, section 3.7).
    """
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped if mapped is not None else address


def parse_host(host: str) -> Address | str:
    """Return a host as an address or as a DNS name in A-labels.

    An address must be in its normal form: no octal, hex or shortened parts, no zone id. Only the syntax is checked.
    Raises HostRefused.
    """
    # The codec in _a_label takes quadratic time (CVE-2022-45061), so the length is checked first.
    if not 0 < len(host) <= _NAME_LENGTH + 1:
        raise HostRefused("a name has 1 to 253 characters")
    if ":" in host or host.startswith("["):
        return _ipv6_literal(host)
    name = _dns_name(host.removesuffix("."))
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        return _ipv4_literal(host)
    return name


def _network_reason(address: Address, table: tuple[tuple[Network, str], ...]) -> str | None:
    return next((reason for network, reason in table if address in network), None)


def _suffix_reason(name: str, table: tuple[tuple[str, str], ...]) -> str | None:
    return next((reason for suffix, reason in table if f".{name}".endswith(f".{suffix}")), None)


def _format_reason(address: Address) -> str | None:
    """Return the reason to refuse an IPv6 address for its format, under any prefix."""
    if isinstance(address, IPv4Address):
        return None
    if address.scope_id:
        return "a zone id"
    return "ISATAP, RFC 5214" if int(address) >> 32 & 0xFFFFFFFF in ISATAP_IDENTIFIERS else None


def _ipv6_literal(host: str) -> IPv6Address:
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if "%" in bare:
        raise HostRefused(f"{host!r}: a zone id")
    try:
        return IPv6Address(bare)
    except AddressValueError as error:
        raise HostRefused(f"{host!r}: not an IPv6 address") from error


def _ipv4_literal(host: str) -> IPv4Address:
    try:
        return IPv4Address(host)
    except AddressValueError as error:
        raise HostRefused(f"{host!r}: not a plain IPv4 address") from error


def _dns_name(host: str) -> str:
    """Return the name in lower-case A-labels (RFC 5890); the root dot is already removed."""
    labels = [_a_label(label) for label in host.split(".")]
    name = ".".join(labels)
    if len(name) > _NAME_LENGTH or not all(_LABEL.fullmatch(label) for label in labels):
        raise HostRefused(f"{host!r}: not a DNS name")
    return name


def _a_label(label: str) -> str:
    """Return one label in ASCII, and refuse it if the conversion changes more than case.

    The codec is IDNA 2003: it maps full-width digits to plain ones, and the German sharp s to ss, which is another
    domain in IDNA 2008. A label of assigned characters that every mapping leaves unchanged has the same A-label in
    both; other labels can be given as xn--.
    """
    if label.isascii():
        return label.lower()
    lowered = unicodedata.normalize("NFC", label.lower())
    folded = unicodedata.normalize("NFKC", label.casefold())
    try:
        encoded = lowered.encode("idna")
        is_plain = encoded.decode("idna") == lowered == folded and not _has_control_character(lowered)
    except UnicodeError as error:
        raise HostRefused(f"{label!r}: not a label") from error
    if not is_plain:
        raise HostRefused(f"{label!r}: equivalent to another label")
    return encoded.decode("ascii")


def _has_control_character(label: str) -> bool:
    """Return whether a character is a control, format, private-use or unassigned character."""
    return any(unicodedata.category(character).startswith("C") for character in label)
