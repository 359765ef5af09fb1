"""The guard for outbound connections: which addresses and which host names we may talk to.

Every connection whose target a stranger can choose (webhook URLs, MX hosts, a relay of one's own)
passes here first. `ipaddress.is_global` is no substitute: on Python 3.11 it calls NAT64, 6to4,
v4-compatible and multicast addresses global, and each of those can lead back inside.
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
    """We may not connect there.

    The text is fit for a stranger's eyes: it says nothing of what the name resolved to, so it
    cannot be used to look around in our network. `reason` is for our own log.
    """

    text = "target not allowed"

    def __init__(self, reason: str) -> None:
        super().__init__(self.text)
        self.reason = reason


class AddressRefused(TargetRefused):
    """At least one of the addresses is not a public unicast address."""

    text = "address not allowed"


class HostRefused(TargetRefused):
    """The host is neither a public DNS name nor an address literal in its plain spelling."""

    text = "host not allowed"


# The first row that fits gives the reason, so single addresses stand before their networks.
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
        # Inside 2000::/3: registered for something else, or carrying an IPv4 address of its own.
        ("2001::/32", "Teredo, RFC 4380"),
        ("2001::/23", "protocol assignments, RFC 2928"),
        ("2001:db8::/32", "documentation, RFC 3849"),
        ("2002::/16", "6to4, RFC 3056"),
        ("2620:4f:8000::/48", "AS112 sinkhole, RFC 7534"),
        ("3fff::/20", "documentation, RFC 9637"),
        # Outside 2000::/3 all is refused anyway; these rows only give it a name. The two cloud
        # rows do more: they stay shut where private networks are open.
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

# What a guard with `allow_private` opens: one machine, or one office, talking to itself.
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

# RFC 5214, section 6.1: the low half of the address is one of these two words, then an IPv4
# address. The words mark a tunnel under any prefix, so no network can stand for them.
ISATAP_WORDS = frozenset({0x00005EFE, 0x02005EFE})

# Names by their ending, whole labels.
REFUSED_NAMES: tuple[tuple[str, str], ...] = (
    ("metadata.google.internal", "Google Cloud metadata"),
    ("onion", "Tor services, RFC 7686"),
)
PRIVATE_NAMES: tuple[tuple[str, str], ...] = (
    ("localhost", "loopback, RFC 6761"),
    ("localdomain", "a host file's name for this machine"),
    ("local", "multicast DNS, RFC 6762"),
    ("internal", "reserved by ICANN for private use"),
    ("home.arpa", "home networks, RFC 8375"),
)

# Underscores are outside RFC 1123, but the DNS takes them (RFC 2181, section 11) and mail
# exchangers that carry them exist.
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
# No top-level domain is a number, yet inet_aton() reads decimal, octal and hex parts: what ends
# in a number is an address, or means to pass for one.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_NAME_LENGTH = 253


@dataclass(frozen=True, kw_only=True)
class Guard:
    """Tells which targets we may connect to.

    own: addresses of our own interfaces, refused though public: what listens there may trust its
        neighbours. They stay refused with `allow_private`; a trial on one machine passes none.
    allow_private: loopback and private networks and their names are open, for trials on one
        machine. Link-local addresses, where clouds keep their credentials, stay refused.
    """

    own: frozenset[Address] = frozenset()
    allow_private: bool = False

    def refusal_reason(self, address: Address) -> str | None:
        """Return why the address may not be connected to, or None when it may."""
        address = unwrap(address)
        if address in self.own:
            return "an address of our own"
        if reason := _row_for(address, REFUSED_NETWORKS) or _shape_refusal(address):
            return reason
        if reason := _row_for(address, PRIVATE_NETWORKS):
            return self._private(reason)
        return None if _is_global_unicast(address) else "outside global unicast, RFC 4291"

    def check_addresses(self, answers: Iterable[Address]) -> tuple[Address, ...]:
        """Return the addresses to connect to, IPv4-mapped ones as IPv4.

        One bad answer spoils them all: a resolver's answer that mixes public and private
        addresses is an attempt to have the second one tried.
        Raises AddressRefused for a refused answer, and for none at all.
        """
        addresses = tuple(unwrap(address) for address in answers)
        if not addresses:
            raise AddressRefused("no address")
        for address in addresses:
            if reason := self.refusal_reason(address):
                raise AddressRefused(f"{address}: {reason}")
        return addresses

    def check_host(self, host: str) -> Address | str:
        """Return the host as a tested address, or as a DNS name whose answers are yet to be tested.

        host: the host of a URL or an MX record, an IPv6 literal with or without its brackets.
        The caller connects to what is returned and never to what was passed in, which another
        parser may read differently. Raises HostRefused or AddressRefused.
        """
        target = parse_host(host)
        if not isinstance(target, str):
            return self.check_addresses([target])[0]
        if reason := self._name_refusal(target):
            raise HostRefused(f"{target}: {reason}")
        return target

    def _name_refusal(self, name: str) -> str | None:
        if reason := _ending_for(name, REFUSED_NAMES):
            return reason
        if reason := _ending_for(name, PRIVATE_NAMES):
            return self._private(reason)
        return None if "." in name else self._private("a name of one label")

    def _private(self, reason: str) -> str | None:
        return None if self.allow_private else reason


def unwrap(address: Address) -> Address:
    """Return the IPv4 address inside `::ffff:0:0/96`, any other address as it is.

    The kernel connects a mapped address over IPv4 (RFC 3493, section 3.7).
    """
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped if mapped is not None else address


def parse_host(host: str) -> Address | str:
    """Return the literal address or the DNS name, in A-labels, that a host spells.

    Only the plain spelling of an address is one: no octal, hex or shortened parts, no zone id.
    Nothing is tested here beyond the spelling. Raises HostRefused.
    """
    # The codec in _a_label takes quadratic time (CVE-2022-45061), so length is looked at first.
    if not 0 < len(host) <= _NAME_LENGTH + 1:
        raise HostRefused("a name is 1 to 253 characters")
    if ":" in host or host.startswith("["):
        return _ipv6_literal(host)
    name = _dns_name(host.removesuffix("."))
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        return _ipv4_literal(host)
    return name


def _row_for(address: Address, table: tuple[tuple[Network, str], ...]) -> str | None:
    return next((reason for network, reason in table if address in network), None)


def _ending_for(name: str, table: tuple[tuple[str, str], ...]) -> str | None:
    return next((why for ending, why in table if f".{name}".endswith(f".{ending}")), None)


def _shape_refusal(address: Address) -> str | None:
    """Refuse IPv6 addresses for what they carry, under any prefix."""
    if isinstance(address, IPv4Address):
        return None
    if address.scope_id:
        return "a zone id"
    return "ISATAP, RFC 5214" if int(address) >> 32 & 0xFFFFFFFF in ISATAP_WORDS else None


def _is_global_unicast(address: Address) -> bool:
    return isinstance(address, IPv4Address) or address in GLOBAL_UNICAST


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
    """Return the name in lower-case A-labels (RFC 5890); the root dot is already gone."""
    labels = [_a_label(label) for label in host.split(".")]
    name = ".".join(labels)
    if len(name) > _NAME_LENGTH or not all(_LABEL.fullmatch(label) for label in labels):
        raise HostRefused(f"{host!r}: not a DNS name")
    return name


def _a_label(label: str) -> str:
    """Return one label in ASCII, and refuse it where that means more than lower case.

    The codec is IDNA 2003: it turns full-width digits into plain ones, and the German sharp s
    into ss, which is another domain in IDNA 2008. A label of characters this Unicode knows, left
    as it is by every mapping, has one A-label in both; the others can be given as xn--.
    """
    if label.isascii():
        return label.lower()
    lowered = unicodedata.normalize("NFC", label.lower())
    folded = unicodedata.normalize("NFKC", label.casefold())
    try:
        encoded = lowered.encode("idna")
        is_plain = encoded.decode("idna") == lowered == folded and not _has_odd_character(lowered)
    except UnicodeError as error:
        raise HostRefused(f"{label!r}: not a label") from error
    if not is_plain:
        raise HostRefused(f"{label!r}: a spelling of another label")
    return encoded.decode("ascii")


def _has_odd_character(label: str) -> bool:
    """Tell whether a character is control, format, private or unassigned."""
    return any(unicodedata.category(character).startswith("C") for character in label)
