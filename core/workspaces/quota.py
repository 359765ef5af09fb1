"""Monthly quota: taken in the transaction that accepts emails, never exceeded (docs/specification.md, Plans and quota).

One conditional upsert decides; concurrent requests see each other's usage. It locks the workspace's usage row until
the commit, so the transaction must commit right after it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn

from django.db import connection

from core.lib.coded_texts import CodedText
from core.lib.datetimes import format_datetime
from core.lib.ids import to_uuid
from core.lib.sql import Fragment, run
from core.workspaces.errors import QuotaExceeded
from core.workspaces.models import Usage, Workspace

TAKE = """
INSERT INTO workspaces_usage (workspace_id, month, used)
SELECT %(workspace)s::uuid, date_trunc('month', now() AT TIME ZONE 'UTC')::date, %(units)s
 WHERE %(units)s <= %(limit)s AND {condition}
    ON CONFLICT (workspace_id, month) DO UPDATE SET used = workspaces_usage.used + EXCLUDED.used
 WHERE EXCLUDED.used = 0 OR workspaces_usage.used + EXCLUDED.used <= %(limit)s
RETURNING used
"""
REFUND = """
UPDATE workspaces_usage SET used = greatest(used - %(units)s, 0)
 WHERE workspace_id = %(workspace)s AND month = date_trunc('month', now() AT TIME ZONE 'UTC')::date
   AND month = date_trunc('month', %(taken_at)s::timestamptz AT TIME ZONE 'UTC')::date
"""
UNLIMITED = 2**62


@dataclass(frozen=True)
class Quota:
    """Quota usage of the current month; limit and remaining are None on an unlimited plan."""

    limit: int | None
    used: int
    resets_at: datetime

    @property
    def remaining(self) -> int | None:
        return None if self.limit is None else max(self.limit - self.used, 0)


def take_fragment(workspace: Workspace, *, units: int, condition: str = "true") -> Fragment:
    """Return SQL that takes all units or none. It returns no row if the quota is exceeded or the condition is false."""
    limit = UNLIMITED if workspace.limits.emails_per_month is None else workspace.limits.emails_per_month
    values = {"workspace": to_uuid(workspace.id, prefix="ws_"), "units": units, "limit": limit}
    return Fragment(TAKE.format(condition=condition), values)


def take_quota(workspace: Workspace, *, units: int) -> None:
    """Take units from this month's quota. Raises QuotaExceeded."""
    take = take_fragment(workspace, units=units)
    if not run(take.sql, take.params):
        raise_quota_exceeded(workspace, units=units)


def raise_quota_exceeded(workspace: Workspace, *, units: int) -> NoReturn:
    """Raise QuotaExceeded with the current usage."""
    quota = read_quota(workspace)
    raise QuotaExceeded(
        CodedText("workspaces.quota_exceeded", limit=quota.limit, used=quota.used, units=units),
        limit=quota.limit,
        used=quota.used,
        requested=units,
        resetsAt=format_datetime(quota.resets_at),
    )


def refund_quota(workspace_id: str, *, units: int, taken_at: datetime) -> None:
    """Return the units of a cancelled email to the quota, if they were taken in the current month."""
    with connection.cursor() as cursor:
        cursor.execute(REFUND, {"workspace": to_uuid(workspace_id, prefix="ws_"), "units": units, "taken_at": taken_at})


def read_quota(workspace: Workspace) -> Quota:
    month = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    used = Usage.objects.filter(workspace=workspace, month=month.date()).values_list("used", flat=True).first()
    return Quota(limit=workspace.limits.emails_per_month, used=used or 0, resets_at=_next_month(month))


def _next_month(month: datetime) -> datetime:
    return month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)
