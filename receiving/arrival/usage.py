"""Use of receiving by a workspace: stored bytes and messages of the day, each with a limit.

One network may use a share of each, so that no stranger uses up the limits (docs/decisions/0296).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from ipaddress import ip_address
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
READ = f"""
SELECT u.stored_bytes, CASE WHEN u.day = {TODAY} THEN u.messages ELSE 0 END,
       coalesce(n.stored_bytes, 0), CASE WHEN n.day = {TODAY} THEN n.messages ELSE 0 END
  FROM receiving_receivingusage u
       LEFT JOIN receiving_networkusage n ON n.workspace_id = u.workspace_id AND n.network = {GIVEN_NETWORK}
 WHERE u.workspace_id = %(workspace)s
"""  # noqa: S608 - a constant
# The row stays locked until the commit. Nothing is returned if a limit would be exceeded.
TAKE = f"""
INSERT INTO receiving_receivingusage AS u (workspace_id, stored_bytes, day, messages)
SELECT %(workspace)s, %(size)s, {TODAY}, 1 WHERE %(size)s <= %(storage)s AND 1 <= %(daily)s
    ON CONFLICT (workspace_id) DO UPDATE
   SET stored_bytes = u.stored_bytes + EXCLUDED.stored_bytes, day = EXCLUDED.day,
       messages = CASE WHEN u.day = EXCLUDED.day THEN u.messages ELSE 0 END + 1
 WHERE u.stored_bytes + EXCLUDED.stored_bytes <= %(storage)s
   AND CASE WHEN u.day = EXCLUDED.day THEN u.messages ELSE 0 END < %(daily)s
RETURNING stored_bytes
"""  # noqa: S608 - a constant
# Always after TAKE, whose row is locked.
TAKE_OF_NETWORK = f"""
INSERT INTO receiving_networkusage AS n (workspace_id, network, stored_bytes, day, messages)
SELECT %(workspace)s, {GIVEN_NETWORK}, %(size)s, {TODAY}, 1
 WHERE %(size)s <= %(network_storage)s
    ON CONFLICT (workspace_id, network) DO UPDATE
   SET stored_bytes = n.stored_bytes + EXCLUDED.stored_bytes, day = EXCLUDED.day,
       messages = CASE WHEN n.day = EXCLUDED.day THEN n.messages ELSE 0 END + 1
 WHERE n.stored_bytes + EXCLUDED.stored_bytes <= %(network_storage)s
   AND CASE WHEN n.day = EXCLUDED.day THEN n.messages ELSE 0 END < %(network_daily)s
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
        if self.messages >= self.daily_messages:
            return replies.DAY_IS_FULL
        if self.storage_bytes is not None and self.stored_bytes >= self.storage_bytes:
            return replies.STORAGE_FULL
        if self.network_messages >= _share(self.daily_messages):
            return replies.NETWORK_DAY_IS_FULL
        if self.storage_bytes is not None and self.network_bytes >= _share(self.storage_bytes):
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
    rows = run(READ, {"workspace": to_uuid(workspace.id, prefix="ws_"), "address": _counted(remote_ip)})
    stored, messages, network_bytes, network_messages = rows[0] if rows else (0, 0, 0, 0)
    limits = storage_limit(workspace), settings.RECEIVING_DAILY_LIMIT
    return ReceivingUse(stored, messages, *limits, network_bytes, network_messages)


def take_usage(workspace: Workspace, *, size: int, remote_ip: str | None) -> None:
    """Count a message of a workspace in the caller's transaction. Raises LimitReached."""
    if size > message_limit(workspace):
        raise LimitReached(replies.TOO_LARGE_FOR_RECIPIENT)
    limit, daily, address = storage_limit(workspace), settings.RECEIVING_DAILY_LIMIT, _counted(remote_ip)
    values = {
        "workspace": to_uuid(workspace.id, prefix="ws_"),
        "address": address,
        "size": size,
        "storage": UNLIMITED if limit is None else limit,
        "daily": daily,
        "network_storage": UNLIMITED if limit is None else _share(limit),
        "network_daily": _share(daily),
    }
    taken, *of_network = run_together(
        [Fragment(statement, values) for statement in ([TAKE, TAKE_OF_NETWORK] if address else [TAKE])]
    )
    if not taken:
        raise LimitReached(read_usage(workspace).refusal or replies.STORAGE_FULL)
    if not all(of_network):
        is_day_full = read_usage(workspace, remote_ip=remote_ip).network_messages >= _share(daily)
        raise LimitReached(replies.NETWORK_DAY_IS_FULL if is_day_full else replies.NETWORK_STORAGE_FULL)


def _counted(remote_ip: str | None) -> str | None:
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


def count_received(email: ReceivedEmail) -> None:
    """Count an email that is published, in the caller's transaction."""
    key = counters.counter_key(COUNTER, is_test=email.is_test)
    counters.add([(counters.CounterKey(email.workspace_id, email.received_at, key), 1)])


def received_by_day(workspace: Workspace, first: date, last: date) -> list[tuple[date, int]]:
    """Return the number of published emails, without simulated ones, of each UTC day of a range."""
    return [(day, int(count)) for day, count in counters.read(BY_DAY, workspace.id, first=first, last=last)]


def total_stored_bytes() -> int:
    """Return the bytes that all workspaces store, for `/metrics`."""
    total = ReceivingUsage.objects.aggregate(total=Sum("stored_bytes"))["total"]
    return int(total or 0)
