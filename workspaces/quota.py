"""The monthly quota: taken in the transaction that accepts, never oversold (CONTRACT section 2).

One conditional upsert decides; of requests that arrive together each sees what the one before it took.
It holds the workspace's row until the commit, and so the commit must follow at once.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn

from django.db import connection

from api.fields import wire_time
from lib.ids import to_uuid
from workspaces.errors import QuotaExceeded
from workspaces.models import Usage, Workspace

TAKE_WHERE = """
INSERT INTO workspaces_usage (workspace_id, month, used)
SELECT %(workspace)s::uuid, date_trunc('month', now() AT TIME ZONE 'UTC')::date, %(units)s
 WHERE %(units)s <= %(limit)s AND {condition}
    ON CONFLICT (workspace_id, month) DO UPDATE SET used = workspaces_usage.used + EXCLUDED.used
 WHERE workspaces_usage.used + EXCLUDED.used <= %(limit)s
RETURNING used
"""
TAKE = TAKE_WHERE.format(condition="true")
GIVE_BACK = """
UPDATE workspaces_usage SET used = greatest(used - %(units)s, 0)
 WHERE workspace_id = %(workspace)s AND month = date_trunc('month', now() AT TIME ZONE 'UTC')::date
   AND month = date_trunc('month', %(taken_at)s::timestamptz AT TIME ZONE 'UTC')::date
"""
UNLIMITED = 2**62


@dataclass(frozen=True)
class Quota:
    """Where a workspace stands this month; limit and remaining are None on an unlimited plan."""

    limit: int | None
    used: int
    resets_at: datetime

    @property
    def remaining(self) -> int | None:
        return None if self.limit is None else max(self.limit - self.used, 0)


def take_values(workspace: Workspace, *, units: int) -> dict[str, Any]:
    """Return the values of TAKE, which takes units of this month, all or none; without a row they were refused."""
    limit = workspace.limits.emails_per_month
    return {
        "workspace": to_uuid(workspace.id, prefix="ws_"),
        "units": units,
        "limit": UNLIMITED if limit is None else limit,
    }


def take_quota(workspace: Workspace, *, units: int) -> None:
    """Take units of this month. Raises QuotaExceeded."""
    with connection.cursor() as cursor:
        cursor.execute(TAKE, take_values(workspace, units=units))
        if cursor.rowcount == 1:
            return
    refuse_quota(workspace, units=units)


def refuse_quota(workspace: Workspace, *, units: int) -> NoReturn:
    """Raise QuotaExceeded with what is left."""
    quota = read_quota(workspace)
    raise QuotaExceeded(
        f"The plan allows {quota.limit} emails a month; {quota.used} are used and {units} more were asked for.",
        limit=quota.limit,
        used=quota.used,
        requested=units,
        resetsAt=wire_time(quota.resets_at),
    )


def give_quota_back(workspace_id: str, *, units: int, taken_at: datetime) -> None:
    """Return units of an email that was cancelled in the month in which they were taken."""
    with connection.cursor() as cursor:
        cursor.execute(
            GIVE_BACK, {"workspace": to_uuid(workspace_id, prefix="ws_"), "units": units, "taken_at": taken_at}
        )


def read_quota(workspace: Workspace) -> Quota:
    month = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    used = Usage.objects.filter(workspace=workspace, month=month.date()).values_list("used", flat=True).first()
    return Quota(limit=workspace.limits.emails_per_month, used=used or 0, resets_at=_next_month(month))


def _next_month(month: datetime) -> datetime:
    return month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)
