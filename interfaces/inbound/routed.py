"""The commands of a session about recipients of workspaces: RCPT, and the message.

Content is never refused after DATA except for its size and a mail loop, and nothing is ever sent in answer.
"""

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TypeVar

from django.conf import settings

from core.counters.process_counts import Labels, ProcessCounts, read_process_counts
from core.lib.mail.smtp_limits import network_of
from core.lib.network.address_guard import unwrap
from core.lib.network.resolver import DnsError, Resolver
from core.lib.sql import is_outage
from core.lib.worker.failpoints import failpoint
from interfaces.inbound.sessions import InboundEnvelope, InboundSMTP
from receiving.arrival import replies
from receiving.arrival.storing import Arrival, Delivery, store_messages
from receiving.arrival.usage import LimitReached

log = logging.getLogger("postrider.inbound")

T = TypeVar("T")
R = TypeVar("R")

STORAGE_FAILED = "451 4.3.0 Temporary storage failure"
MAX_RECIPIENTS = 50
MAX_RECEIVED_FIELDS = 30
NETWORK_MESSAGES = 500
HOUR = 3600.0
DNSBL_SECONDS = 3.0
HEADER_BYTES = 1024 * 1024
END_OF_HEADER = re.compile(rb"\r\n\r\n")
RECEIVED = re.compile(rb"^received[ \t]*:", re.IGNORECASE | re.MULTILINE)
# Counts of this process: replies to recipients and messages, by their names.
KIND = "inbound"
FAILED = "failed"
counts = ProcessCounts(KIND)
REPLY_NAMES = {
    replies.NO_SUCH_ADDRESS: "no_such_address",
    replies.REJECTED: "rejected",
    replies.BLOCKED: "blocked",
    replies.LISTED: "listed",
    replies.SUSPENDED: "suspended",
    replies.DAY_IS_FULL: "daily_limit",
    replies.STORAGE_FULL: "storage_full",
    replies.NETWORK_DAY_IS_FULL: "network_daily_limit",
    replies.NETWORK_STORAGE_FULL: "network_storage_full",
    replies.NETWORK_LIMIT: "network_limit",
    replies.TOO_MANY_RECIPIENTS: "too_many_recipients",
    replies.OTHER_KIND: "other_kind",
    replies.NO_MEMORY: "no_memory",
    replies.TOO_LARGE: "too_large",
    replies.TOO_LARGE_FOR_RECIPIENT: "too_large",
    replies.MAIL_LOOP: "mail_loop",
    replies.TOO_MANY_SESSIONS: "too_many_sessions",
}


@dataclass
class HourlyMessages:
    """The messages of each network in the current hour, by the clock of this process.

    Private networks have no limit: an installation sends its emails to itself from them (docs/decisions/0233).
    """

    counts: Counter[str]
    began_at: float = 0.0

    def has_room(self, peer: str) -> bool:
        if time.monotonic() - self.began_at >= HOUR:
            self.counts.clear()
            self.began_at = time.monotonic()
        return unwrap(ip_address(peer)).is_private or self.counts[network_of(peer)] < NETWORK_MESSAGES

    def add(self, peer: str) -> None:
        self.counts[network_of(peer)] += 1


def read_reply_counts() -> Iterator[tuple[Labels, int]]:
    """Yield the all-time number of replies of this installation by their names."""
    return read_process_counts(KIND, known=[(name,) for name in ("accepted", "stored", FAILED, *REPLY_NAMES.values())])


def count_reply(reply: str) -> str:
    """Count a reply for `/metrics`, and return it."""
    name = "accepted" if reply == replies.ACCEPTED else "stored" if reply.startswith("250") else ""
    counts.count(name or REPLY_NAMES.get(reply, FAILED))
    return reply


async def is_listed(peer: str) -> bool:
    """Return whether a host is on one of the block lists in RECEIVING_DNSBL; a failed lookup is no hit."""
    names = list(_list_names(peer))
    if not names:
        return False
    resolver = Resolver(settings.DNS_SERVERS, lifetime_seconds=DNSBL_SECONDS)
    for name in names:
        try:
            answer = await resolver.look_up(name, "A")
        except DnsError:
            continue
        # RFC 5782, section 2.1.
        if any(record.startswith("127.") for record in answer.records):
            return True
    return False


def _list_names(peer: str) -> list[str]:
    """Return the names of a host on the block lists (RFC 5782, sections 2.1 and 2.4)."""
    try:
        address = unwrap(ip_address(peer))
    except ValueError:
        return []
    digits = address.reverse_pointer.removesuffix(".in-addr.arpa").removesuffix(".ip6.arpa")
    return [f"{digits}.{zone.strip('.')}" for zone in settings.RECEIVING_DNSBL]


def is_looping(source: bytes | bytearray) -> bool:
    """Return whether a message has more than MAX_RECEIVED_FIELDS Received fields, or two of ours."""
    end = END_OF_HEADER.search(source, 0, HEADER_BYTES)
    header = bytes(memoryview(source)[: end.start() if end else min(len(source), HEADER_BYTES)])
    starts = [match.start() for match in RECEIVED.finditer(header)]
    if len(starts) > MAX_RECEIVED_FIELDS:
        return True
    own = f"by {settings.EHLO_NAME} (Postrider) with".encode()
    return header.count(own) > 1


def read_arrival(server: InboundSMTP, envelope: InboundEnvelope) -> Arrival:
    """Return the message of a session, which may end while it is stored."""
    return Arrival(
        envelope.source,
        envelope_from=(envelope.mail_from or "").strip("<>"),
        remote_ip=peer_of(server),
        helo=server.current_session().host_name or "",
        tls=server.tls_version(),
    )


def process_together(act: Callable[[Sequence[T]], list[R]], items: Sequence[T], *, failed: R) -> list[R]:
    """Return the results of items that one step processes; if it fails, each item is processed alone.

    failed: the result of an item that fails alone.
    Raises the errors of a database that does not respond.
    """
    try:
        return act(items)
    except Exception as error:
        if is_outage(error):
            raise
        log.exception("a recipient or a message failed", extra={"data": {"together": len(items)}})
        if len(items) == 1:
            return [failed]
    return [result for item in items for result in process_together(act, [item], failed=failed)]


def store(deliveries: Sequence[Delivery]) -> list[str]:
    """Store messages in one transaction; return the SMTP replies to their final dots."""
    kept = [one for one in deliveries if not is_looping(one.arrival.source)]
    stored = dict(zip(map(id, kept), _store(kept), strict=True))
    return [stored.get(id(one), replies.MAIL_LOOP) for one in deliveries]


def _store(deliveries: Sequence[Delivery]) -> list[str]:
    if not deliveries:
        return []
    try:
        ids = store_messages(deliveries)
    except LimitReached as error:
        if len(deliveries) == 1:
            return [error.reply]
        # The others fit.
        return [reply for one in deliveries for reply in _store([one])]
    failpoint("receiving.after_commit")
    return [replies.stored(id_) for id_ in ids]


def peer_of(server: InboundSMTP) -> str | None:
    """Return the address of the client in its usual form."""
    peer = server.current_session().peer
    try:
        return str(unwrap(ip_address(str(peer[0]).partition("%")[0]))) if peer else None
    except ValueError:
        return None
