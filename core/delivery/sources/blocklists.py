"""Block lists of addresses: the meaning of their answers, and the pages where a removal is requested.

RFC 5782 describes the lists. docs/decisions/0349 has the source of each row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from core.delivery.sources.answers import ListingAnswer

ANSWERS = IPv4Network("127.0.0.0/8")
# Answers of lists that refuse the query. They say nothing about the address.
REFUSALS = {
    IPv4Address("127.255.255.252"): "the name of the list is misspelt",
    IPv4Address("127.255.255.254"): "the list refuses queries of public resolvers",
    IPv4Address("127.255.255.255"): "the list refuses further queries of this resolver",
    # URIBL and others; also the usual answer of a resolver that blocks names.
    IPv4Address("127.0.0.1"): "the list or the resolver refuses the query",
}
REFUSAL_NETWORK = IPv4Network("127.255.255.0/24")
OTHER_REFUSAL = "the list refuses the query"
OUTSIDE = "the resolver answers with an address outside of 127.0.0.0/8"
# Labels of this length or more are the keys of a customer, such as KEY.zen.dq.spamhaus.net.
KEY_LENGTH = 20


@dataclass(frozen=True)
class RemovalPage:
    """The page of the lists below a domain. url: with {address} if the page takes one."""

    suffix: str
    url: str


REMOVAL_PAGES = (
    RemovalPage("spamhaus.org", "https://check.spamhaus.org/results/?query={address}"),
    RemovalPage("spamhaus.net", "https://check.spamhaus.org/results/?query={address}"),
    # Removes addresses by itself, a day after the last report.
    RemovalPage("spamcop.net", "https://www.spamcop.net/w3m?action=checkblock&ip={address}"),
    RemovalPage("barracudacentral.org", "https://www.barracudacentral.org/rbl/removal-request"),
    RemovalPage("psbl.surriel.com", "https://psbl.org/listing?ip={address}"),
    RemovalPage("uceprotect.net", "https://www.uceprotect.net/en/rblcheck.php?ipr={address}"),
    RemovalPage("abusix.zone", "https://lookup.abusix.com/search?q={address}"),
    RemovalPage("dronebl.org", "https://dronebl.org/lookup?ip={address}"),
    RemovalPage("blocklist.de", "https://www.blocklist.de/en/delist.html?ip={address}"),
    RemovalPage("manitu.net", "https://www.dnsbl.manitu.net/lookup.php?value={address}"),
)


def list_name(zone: str) -> str:
    """Return the name of a list to show: its zone without the key of a customer."""
    labels = zone.split(".")
    return ".".join(label for label in labels if len(label) < KEY_LENGTH) or zone


def removal_url(name: str, address: str) -> str:
    """Return the page of a list where the removal of an address is requested; empty if the list is not known."""
    urls = (page.url for page in REMOVAL_PAGES if f".{name}".endswith(f".{page.suffix}"))
    return next(urls, "").format(address=address)


def read_codes(codes: Sequence[str]) -> ListingAnswer:
    """Return the meaning of the A records of a list; one refusal among them makes all of them meaningless."""
    addresses = [IPv4Address(code) for code in codes]
    shown = tuple(sorted(codes))
    for address in addresses:
        if address not in ANSWERS:
            return ListingAnswer(None, shown, error=OUTSIDE)
        if address in REFUSALS or address in REFUSAL_NETWORK:
            return ListingAnswer(None, shown, error=REFUSALS.get(address, OTHER_REFUSAL))
    return ListingAnswer(bool(addresses), shown)
