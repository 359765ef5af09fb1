"""Receivers: the organisations that run the mail hosts of recipients' domains, and what they permit.

One table for limits, signals and analytics (docs/decisions/0345).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from core.lib.network.public_suffixes import organizational_domain

# hotmail.fr, yahoo.co.uk
COUNTRY = re.compile(r"([a-z-]+)\.(?:com|[a-z]{2}|(?:co|com)\.[a-z]{2}|net)")
HOST_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9-]{1,63})+")
DEFAULT = "default"


@dataclass(frozen=True, kw_only=True)
class Receiver:
    """An organisation that runs mail hosts, and the limits of one source address at all of them together.

    key: its name in the table, without a dot; else the registrable domain of the mail host.
    name: for people.
    mx: names of its mail hosts; each stands for itself and all names below it.
    domains: domains of its mailboxes; one without a dot stands for its domains in all countries, such as hotmail.fr.
    replies: words in lower case by which a reply names it.
    reports: in lower case, the organization that its DMARC reports name, or the domain of the address in them.
    connections: at a time.
    messages_per_connection: after which a connection is closed.
    per_minute: messages; None for no limit.
    warm_up: the messages that a new address sends it on each day, from its first one on; afterwards any number.
    tls: opportunistic or required; None as for all others.
    source: the page on which it gives its numbers; empty if it does not.
    reason: where numbers without a source are from.
    """

    key: str
    name: str
    mx: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    connections: int = 10
    messages_per_connection: int = 100
    per_minute: int | None = None
    warm_up: tuple[int, ...] = ()
    tls: str | None = None
    source: str = ""
    reason: str = ""


class ReceiverTable:
    """The known receivers in their order, and the limits of all others.

    default: a receiver with the limits of those that are not in the table.
    """

    def __init__(self, receivers: Iterable[Receiver], *, default: Receiver) -> None:
        self.receivers = tuple(receivers)
        self.default = default
        self._by_key = {one.key: one for one in self.receivers}
        self._by_mx = {name: one for one in self.receivers for name in one.mx}
        self._by_domain = {domain: one for one in self.receivers for domain in one.domains}
        self._by_reporter = {name: one for one in self.receivers for name in one.reports}

    def find(self, key: str) -> Receiver | None:
        """Return the receiver with a key, or None if it is not in the table."""
        return self._by_key.get(key)

    def receiver_of_key(self, key: str) -> Receiver:
        """Return the receiver with a key; for one that is not in the table, one with the limits of all others."""
        return self._by_key.get(key) or replace(self.default, key=key, name=key)

    def receiver_of_host(self, mx_host: str) -> Receiver:
        """Return the receiver of a mail host, which is the best MX of a domain: by the longest name in the table.

        mx_host: an A-label; upper case and a final dot do not count. The key of a receiver that is not in the table
        is the registrable domain of the host.
        """
        name = mx_host.rstrip(".").lower()
        labels = name.split(".")
        for start in range(len(labels) - 1):
            if found := self._by_mx.get(".".join(labels[start:])):
                return found
        return self.receiver_of_key(organizational_domain(name))

    def receiver_of_mailbox_domain(self, domain: str) -> Receiver | None:
        """Return the receiver whose mailboxes have a domain, or None. domain: in lower case."""
        if "." in domain and (found := self._by_domain.get(domain)):
            return found
        match = COUNTRY.fullmatch(domain)
        return self._by_domain.get(match[1]) if match else None

    def receiver_of_reply(self, text: str) -> Receiver | None:
        """Return the receiver that a reply names, or None. A name for people: any host can write these words."""
        lower = text.lower()
        return next((one for one in self.receivers if any(word in lower for word in one.replies)), None)

    def receiver_of_report(self, organization: str, *, domain: str) -> Receiver:
        """Return the receiver that sent a DMARC report; one that is not in the table has the registrable domain.

        organization: as it names itself, such as google.com or Enterprise Outlook.
        domain: that of its address.
        Names for people: anybody can write them.
        """
        names = [name for name in (organization.strip().rstrip(".").lower(), domain.rstrip(".").lower()) if name]
        known = (self._by_reporter.get(name) or self.receiver_of_mailbox_domain(name) for name in names)
        if found := next(filter(None, known), None):
            return found
        hosts = [name for name in names if HOST_NAME.fullmatch(name)]
        found_hosts = [self.receiver_of_host(name) for name in hosts]
        listed = (one for one in found_hosts if one.key in self._by_key)
        return next(listed, None) or next(iter(found_hosts), None) or self.receiver_of_key(organization.strip().lower())
