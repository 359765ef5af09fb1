"""Use of receiving by a workspace: stored bytes and messages of the day, each with a limit.

One network may use a share of each, so that no stranger uses up the limits (docs/decisions/0296).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from ipaddress import ip_address
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Sum

from core.counters import counters
from core.lib.ids import to_uuid
from core.lib.sql import Fragment, run, run_together
from core.workspaces.models import Workspace
from receiving.arrival import replies
from receiving.models import ReceivedEmail, ReceivingUsage

# Published emails, by the hour in which they were received.
COUNTER = "received"
TODAY = "(now() AT TIME ZONE 'UTC')::date"
# The /24 of an IPv4 address, or the /48 of an IPv6 address.
NETWORK = """
CASE family({0}) WHEN 4 THEN network(set_masklen({0}, 24)) ELSE network(set_masklen({0}, 48)) END::text
"""
GIVEN_NETWORK = NETWORK.format("%(address)s::inet")
# The use of a workspace and a host, in the order of the counts of ReceivingUse.
USE = f"""
SELECT coalesce(sum(u.stored_bytes), 0)::bigint, coalesce(sum(u.messages) FILTER (WHERE u.day = {TODAY}), 0)::bigint,
       coalesce(sum(n.stored_bytes), 0)::bigint, coalesce(sum(n.messages) FILTER (WHERE n.day = {TODAY}), 0)::bigint
  FROM receiving_receivingusage u
       LEFT JOIN receiving_networkusage n ON n.workspace_id = u.workspace_id AND n.network = {NETWORK}
 WHERE u.workspace_id = {{workspace}}
"""  # noqa: S608 - a constant
READ = USE.format("%(address)s::inet", workspace="%(workspace)s")
# The row stays locked until the commit. Nothing is returned if a limit would be exceeded.
TAKE = f"""
INSERT INTO receiving_receivingusage AS u (workspace_id, stored_bytes, day, messages)
SELECT %(workspace)s, %(size)s, {TODAY}, %(count)s WHERE %(size)s <= %(storage)s AND %(count)s <= %(daily)s
    ON CONFLICT (workspace_id) DO UPDATE
   SET stored_bytes = u.stored_bytes + EXCLUDED.stored_bytes, day = EXCLUDED.day,
       messages = CASE WHEN u.day = EXCLUDED.day THEN u.messages ELSE 0 END + EXCLUDED.messages
 WHERE u.stored_bytes + EXCLUDED.stored_bytes <= %(storage)s
   AND CASE WHEN u.day = EXCLUDED.day THEN u.messages ELSE 0 END + EXCLUDED.messages <= %(daily)s
RETURNING stored_bytes
"""  # noqa: S608 - a constant
# Always after TAKE, whose row is locked.
TAKE_OF_NETWORK = f"""
INSERT INTO receiving_networkusage AS n (workspace_id, network, stored_bytes, day, messages)
SELECT %(workspace)s, {GIVEN_NETWORK}, %(size)s, {TODAY}, %(count)s
 WHERE %(size)s <= %(network_storage)s AND %(count)s <= %(network_daily)s
    ON CONFLICT (workspace_id, network) DO UPDATE
   SET stored_bytes = n.stored_bytes + EXCLUDED.stored_bytes, day = EXCLUDED.day,
       messages = CASE WHEN n.day = EXCLUDED.day THEN n.messages ELSE 0 END + EXCLUDED.messages
 WHERE n.stored_bytes + EXCLUDED.stored_bytes <= %(network_storage)s
   AND CASE WHEN n.day = EXCLUDED.day THEN n.messages ELSE 0 END + EXCLUDED.messages <= %(network_daily)s
RETURNING stored_bytes
"""  # noqa: S608 - a constant
RELEASE = """
UPDATE receiving_receivingusage u SET stored_bytes = greatest(u.stored_bytes - freed.size, 0)
  FROM unnest(%s::uuid[], %s::bigint[]) AS freed (workspace_id, size) WHERE u.workspace_id = freed.workspace_id
"""
RELEASE_OF_NETWORKS = f"""
UPDATE receiving_networkusage n SET stored_bytes = greatest(n.stored_bytes - freed.size, 0)
  FROM (SELECT workspace_id, {NETWORK.format("address")} AS network, sum(size) AS size
          FROM unnest(%s::uuid[], %s::inet[], %s::bigint[]) AS deleted (workspace_id, address, size)
         GROUP BY 1, 2) freed
 WHERE n.workspace_id = freed.workspace_id AND n.network = freed.network
"""  # noqa: S608 - a constant
FORGET_NETWORKS = f"""
DELETE FROM receiving_networkusage WHERE workspace_id = ANY(%s) AND stored_bytes = 0 AND day < {TODAY}
"""  # noqa: S608 - a constant
# Days without an email have a row, too.
BY_DAY = f"""
SELECT day, coalesce(sum(n) FILTER (WHERE key = '{COUNTER}'), 0)::bigint
  FROM (SELECT generate_series(%(first)s::date, %(last)s::date, '1 day')::date AS day) requested
       LEFT JOIN (
           SELECT day, key, count AS n FROM analytics_tallyday
            WHERE workspace_id = %(workspace)s AND day BETWEEN %(first)s AND %(last)s
           UNION ALL
           SELECT (hour AT TIME ZONE 'UTC')::date, key, change FROM analytics_tallydelta
            WHERE workspace_id = %(workspace)s AND hour >= %(first)s::timestamp AT TIME ZONE 'UTC') counted USING (day)
 GROUP BY day ORDER BY day
"""  # noqa: S608 - a constant
UNLIMITED = 2**62
# One network may use a quarter of the storage and of the messages of a day, one message a tenth of the storage.
NETWORK_SHARES = 4
MESSAGE_SHARES = 10


@dataclass(frozen=True)
class Freed:
    """A deleted email. address: of the host that delivered it; None for a simulated one."""

    workspace_id: str
    address: str | None
    size: int


class LimitReached(Exception):
    """Raised when a workspace cannot store a message. reply: the SMTP reply."""

    def __init__(self, reply: str) -> None:
        super().__init__(reply)
        self.reply = reply


@dataclass(frozen=True)
class ReceivingUse:
    """The storage and the messages of today that a workspace uses, with its limits.

    storage_bytes: the limit of stored_bytes; None without one.
    network_bytes, network_messages: those of the network that was asked for; 0 for a private one.
    """

    stored_bytes: int
    messages: int
    storage_bytes: int | None
    daily_messages: int
    network_bytes: int = 0
    network_messages: int = 0

    @property
    def refusal(self) -> str | None:
        """The SMTP reply to a further recipient, if a limit is reached."""
        return self.refusal_of(count=1, size_bytes=1)

    def refusal_of(self, *, count: int, size_bytes: int) -> str | None:
        """Return the SMTP reply to further emails that exceed a limit."""
        if self.messages + count > self.daily_messages:
            return replies.DAY_IS_FULL
        if self.storage_bytes is not None and self.stored_bytes + size_bytes > self.storage_bytes:
            return replies.STORAGE_FULL
        if self.network_messages + count > _share(self.daily_messages):
            return replies.NETWORK_DAY_IS_FULL
        if self.storage_bytes is not None and self.network_bytes + size_bytes > _share(self.storage_bytes):
            return replies.NETWORK_STORAGE_FULL
        return None


def _share(limit: int) -> int:
    """Return the part of a limit that one network may use: at least one message."""
    return max(limit // NETWORK_SHARES, 1)


def storage_limit(workspace: Workspace) -> int | None:
    """Return the bytes that a workspace may store; None without a limit."""
    return settings.RECEIVING_STORAGE or workspace.limits.storage_bytes


def message_limit(workspace: Workspace) -> int:
    """Return the size of the largest message that a workspace receives."""
    limit = storage_limit(workspace)
    largest = int(settings.RECEIVING_MAX_BYTES)
    return largest if limit is None else min(largest, limit // MESSAGE_SHARES)


def read_usage(workspace: Workspace, *, remote_ip: str | None = None) -> ReceivingUse:
    """Return the use of a workspace, and that of the network of a host."""
    ((*counts,),) = run(READ, {"workspace": to_uuid(workspace.id, prefix="ws_"), "address": counted_host(remote_ip)})
    return use_of(workspace, *counts)


def use_of(
    workspace: Workspace, stored_bytes: int, messages: int, network_bytes: int = 0, network_messages: int = 0
) -> ReceivingUse:
    """Return the use of a workspace by its counts."""
    limits = storage_limit(workspace), settings.RECEIVING_DAILY_LIMIT
    return ReceivingUse(stored_bytes, messages, *limits, network_bytes, network_messages)


@dataclass(frozen=True)
class NewUse:
    """The emails that a workspace is about to store, of one host. size_bytes: of all of them."""

    workspace: Workspace
    remote_ip: str | None
    count: int
    size_bytes: int

    @property
    def values(self) -> Mapping[str, Any]:
        limit, daily = storage_limit(self.workspace), settings.RECEIVING_DAILY_LIMIT
        return {
            "workspace": to_uuid(self.workspace.id, prefix="ws_"),
            "address": counted_host(self.remote_ip),
            "count": self.count,
            "size": self.size_bytes,
            "storage": UNLIMITED if limit is None else limit,
            "daily": daily,
            "network_storage": UNLIMITED if limit is None else _share(limit),
            "network_daily": _share(daily),
        }

    def explain(self) -> str:
        """Return the SMTP reply to these emails, which do not fit into a limit."""
        use = read_usage(self.workspace, remote_ip=self.remote_ip)
        return use.refusal_of(count=self.count, size_bytes=self.size_bytes) or replies.STORAGE_FULL


def take_usage(uses: Iterable[NewUse]) -> None:
    """Count emails in the caller's transaction. Raises LimitReached; then the transaction must be rolled back."""
    # In the order of ids, so that two transactions cannot wait for each other.
    ordered = sorted(uses, key=lambda use: to_uuid(use.workspace.id, prefix="ws_"))
    statements = [
        (use, Fragment(statement, use.values))
        for use in ordered
        for statement in ([TAKE, TAKE_OF_NETWORK] if counted_host(use.remote_ip) else [TAKE])
    ]
    taken = run_together([statement for _, statement in statements])
    for (use, _), rows in zip(statements, taken, strict=True):
        if not rows:
            raise LimitReached(use.explain())


def counted_host(remote_ip: str | None) -> str | None:
    """Return the address of a host whose network has a share.

    None without a host, and for private networks: an installation sends its emails to itself from them
    (docs/decisions/0233).
    """
    return None if remote_ip is None or ip_address(remote_ip).is_private else remote_ip


def release_storage(freed: Iterable[Freed]) -> None:
    """Return bytes of deleted emails in the caller's transaction."""
    rows = [(to_uuid(one.workspace_id, prefix="ws_"), one.address, one.size) for one in freed]
    sizes: Counter[UUID] = Counter()
    for workspace, _, size in rows:
        sizes[workspace] += size
    # In the order in which messages lock them.
    ordered = sorted(sizes.items())
    run(RELEASE, [[workspace for workspace, _ in ordered], [size for _, size in ordered]])
    run(RELEASE_OF_NETWORKS, [*map(list, zip(*rows, strict=True))] or [[], [], []])
    run(FORGET_NETWORKS, [list(sizes)])


def count_received(emails: Iterable[ReceivedEmail]) -> None:
    """Count emails that are published, in the caller's transaction."""
    counters.add(
        (counters.CounterKey(one.workspace_id, one.received_at, counters.counter_key(COUNTER, is_test=one.is_test)), 1)
        for one in emails
    )


def received_by_day(workspace: Workspace, first: date, last: date) -> list[tuple[date, int]]:
    """Return the number of published emails, without simulated ones, of each UTC day of a range."""
    return [(day, int(count)) for day, count in counters.read(BY_DAY, workspace.id, first=first, last=last)]


def total_stored_bytes() -> int:
    """Return the bytes that all workspaces store, for `/metrics`."""
    total = ReceivingUsage.objects.aggregate(total=Sum("stored_bytes"))["total"]
    return int(total or 0)
