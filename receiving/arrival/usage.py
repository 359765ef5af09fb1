"""Use of receiving by a workspace: stored bytes and messages of the day, each with a limit."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from django.conf import settings
from django.db.models import Sum

from core.counters import counters
from core.lib.ids import to_uuid
from core.lib.sql import run
from core.workspaces.models import Workspace
from receiving.arrival import replies
from receiving.models import ReceivedEmail, ReceivingUsage

# Published emails, by the hour in which they were received.
COUNTER = "received"
TODAY = "(now() AT TIME ZONE 'UTC')::date"
READ = f"""
SELECT stored_bytes, CASE WHEN day = {TODAY} THEN messages ELSE 0 END
  FROM receiving_receivingusage WHERE workspace_id = %s
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
RELEASE = """
UPDATE receiving_receivingusage u SET stored_bytes = greatest(u.stored_bytes - freed.size, 0)
  FROM unnest(%s::uuid[], %s::bigint[]) AS freed (workspace_id, size) WHERE u.workspace_id = freed.workspace_id
"""
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


class LimitReached(Exception):
    """Raised when a workspace cannot store a message. reply: the SMTP reply."""

    def __init__(self, reply: str) -> None:
        super().__init__(reply)
        self.reply = reply


@dataclass(frozen=True)
class ReceivingUse:
    """The storage and the messages of today that a workspace uses, with its limits.

    storage_bytes: the limit of stored_bytes; None without one.
    """

    stored_bytes: int
    messages: int
    storage_bytes: int | None
    daily_messages: int

    @property
    def refusal(self) -> str | None:
        """The SMTP reply to a further recipient, if a limit is reached."""
        if self.messages >= self.daily_messages:
            return replies.DAY_IS_FULL
        if self.storage_bytes is not None and self.stored_bytes >= self.storage_bytes:
            return replies.STORAGE_FULL
        return None


def storage_limit(workspace: Workspace) -> int | None:
    """Return the bytes that a workspace may store; None without a limit."""
    return settings.RECEIVING_STORAGE or workspace.limits.storage_bytes


def read_usage(workspace: Workspace) -> ReceivingUse:
    rows = run(READ, [to_uuid(workspace.id, prefix="ws_")])
    stored, messages = rows[0] if rows else (0, 0)
    return ReceivingUse(stored, messages, storage_limit(workspace), settings.RECEIVING_DAILY_LIMIT)


def take_usage(workspace: Workspace, *, size: int) -> None:
    """Count a message of a workspace in the caller's transaction. Raises LimitReached."""
    limit = storage_limit(workspace)
    values = {
        "workspace": to_uuid(workspace.id, prefix="ws_"),
        "size": size,
        "storage": UNLIMITED if limit is None else limit,
        "daily": settings.RECEIVING_DAILY_LIMIT,
    }
    if not run(TAKE, values):
        raise LimitReached(read_usage(workspace).refusal or replies.STORAGE_FULL)


def release_storage(sizes: Mapping[str, int]) -> None:
    """Return bytes of deleted emails, by workspace id, in the caller's transaction."""
    ordered = sorted(sizes.items())
    ids = [to_uuid(workspace_id, prefix="ws_") for workspace_id, _ in ordered]
    run(RELEASE, [ids, [size for _, size in ordered]])


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
