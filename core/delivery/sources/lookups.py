"""Lookups about a source: in block lists (RFC 5782), and of its reverse name."""

import re
from ipaddress import ip_address

from core.delivery.bounces.replies import safe_text
from core.delivery.sources.answers import ListingAnswer, ReverseName, ReverseStatus
from core.delivery.sources.blocklists import read_codes
from core.lib.network.address_guard import Address
from core.lib.network.resolver import DnsError, LookupStatus, Resolver

MAX_TEXT = 500
MAX_CODES = 10
# Names of a reverse zone that are resolved; more of them are an error of its owner.
MAX_NAMES = 5
MAX_NAME_LENGTH = 253
# Section 5 of RFC 5782: each list has the one, and none has the other.
LISTED_ENTRIES = (ip_address("127.0.0.2"), ip_address("::ffff:7f00:2"))
UNLISTED_ENTRY = ip_address("127.0.0.1")
NO_TEST_ENTRY = "the list does not answer this resolver: its test entry 127.0.0.2 is missing"
LISTS_ALL = "the list has every address: its test entry 127.0.0.1 exists"
WHITE_SPACE = re.compile(r"\s+")


def query_name(address: Address, zone: str) -> str:
    """Return the name of an address in a list (RFC 5782, sections 2.1 and 2.4)."""
    digits = address.reverse_pointer.removesuffix(".in-addr.arpa").removesuffix(".ip6.arpa")
    return f"{digits}.{zone}"


async def find_list_error(resolver: Resolver, zone: str) -> str:
    """Return why a list cannot be asked by this resolver, or an empty text.

    A list that was closed may have no address, or all of them.
    """
    for address in LISTED_ENTRIES:
        answer = await _look_up_codes(resolver, address, zone)
        if answer.error:
            return answer.error
        if answer.is_listed:
            unlisted = await _look_up_codes(resolver, UNLISTED_ENTRY, zone)
            return LISTS_ALL if unlisted.codes else ""
    return NO_TEST_ENTRY


async def look_up_listing(resolver: Resolver, address: Address, zone: str) -> ListingAnswer:
    """Return the answer of a list about an address, with the text of the list if it has the address."""
    answer = await _look_up_codes(resolver, address, zone)
    if not answer.is_listed:
        return answer
    return ListingAnswer(True, answer.codes, await _look_up_text(resolver, query_name(address, zone)))


async def look_up_reverse_name(resolver: Resolver, address: Address) -> ReverseName:
    """Return the names of an address, and whether one of them is forward-confirmed (RFC 8601, section 2.7.3)."""
    try:
        answer = await resolver.look_up(address.reverse_pointer, "PTR")
    except DnsError as error:
        return ReverseName(None, error=str(error))
    names = tuple(safe_text(name, max_length=MAX_NAME_LENGTH) for name in sorted(set(answer.records))[:MAX_NAMES])
    if not names:
        return ReverseName(ReverseStatus.MISSING)
    failures = []
    for name in names:
        try:
            forward = await resolver.look_up(name, "AAAA" if address.version == 6 else "A")
        except DnsError as error:
            failures.append(str(error))
            continue
        if address in map(ip_address, forward.records):
            return ReverseName(ReverseStatus.CONFIRMED, names)
    return ReverseName(None if failures else ReverseStatus.UNCONFIRMED, names, "; ".join(failures))


async def _look_up_codes(resolver: Resolver, address: Address, zone: str) -> ListingAnswer:
    try:
        answer = await resolver.look_up(query_name(address, zone), "A")
    except DnsError as error:
        return ListingAnswer(None, error=_without_zone(str(error), zone))
    if answer.status is not LookupStatus.FOUND:
        return ListingAnswer(False)
    return read_codes(answer.records[:MAX_CODES])


async def _look_up_text(resolver: Resolver, name: str) -> str:
    try:
        answer = await resolver.look_up(name, "TXT")
    except DnsError:
        return ""
    text = WHITE_SPACE.sub(" ", " ".join(answer.records)[: MAX_TEXT * 4])
    return safe_text(text, max_length=MAX_TEXT)[:MAX_TEXT]


def _without_zone(text: str, zone: str) -> str:
    """Return the reason of a failed lookup without the queried name, whose zone may contain a key."""
    return f"the lookup failed: {text.rpartition(': ')[2]}" if zone in text else text
