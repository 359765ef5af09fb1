"""Count a workspace's emails and recipients again, and compare with the counters (docs/decisions/0042).

Emails that retention deleted are in the counters twice, as what there was and as what is gone: the difference
is what reconcile computes, at any hour.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from analytics import counters
from analytics.reconcile import COUNTED
from lib.ids import to_uuid

# What an email counts as: emails.status_rollup in SQL, for many rows at once.
FACTS = """
    (VALUES ('status.' || status, true),
            ('reached.delivered', coalesce(delivered_at, opened_at, clicked_at) IS NOT NULL),
            ('reached.bounced', bounced_at IS NOT NULL),
            ('reached.opened', coalesce(opened_at, clicked_at) IS NOT NULL),
            ('reached.clicked', clicked_at IS NOT NULL)) AS fact (key, holds)
"""
FOUND = f"""
    SELECT date_trunc('hour', created_at, 'UTC') AS hour, key, count(*) AS n
      FROM emails_email CROSS JOIN LATERAL {FACTS}
     WHERE workspace_id = %(workspace)s AND holds GROUP BY 1, 2
    UNION ALL
    SELECT %(ever)s, key, count(*)
      FROM emails_email e JOIN emails_recipient r ON r.email_id = e.id
           LEFT JOIN emails_pending p ON p.recipient_id = r.id
           CROSS JOIN LATERAL (VALUES
           ('recipients.accepted', true),
           ('recipients.completed', p.recipient_id IS NULL AND r.state IN ('sent', 'delivered', 'opened', 'clicked')),
           ('recipients.failed', p.recipient_id IS NULL AND r.state IN ('bounced', 'failed')),
           ('recipients.cancelled', r.state = 'cancelled'),
           ('recipients.delayed', p.stage IN (0, 3))) AS fact (key, holds)
     WHERE e.workspace_id = %(workspace)s AND holds GROUP BY 1, 2
"""  # noqa: S608 - a constant
# One statement: both sides belong to one moment, whatever is sent meanwhile.
COMPARE = f"""
SELECT hour, key, coalesce(counted.n, 0), coalesce(found.n, 0)
  FROM ({COUNTED}) counted FULL JOIN ({FOUND}) found USING (hour, key)
 WHERE coalesce(counted.n, 0) <> coalesce(found.n, 0) AND key ~ '^(status|reached|recipients)\\.'
 ORDER BY hour, key
"""  # noqa: S608 - constants
LOCK = "SELECT pg_advisory_xact_lock(hashtext('reconcile'))"


@dataclass(frozen=True)
class Difference:
    """A counter that is not what was found."""

    hour: datetime
    key: str
    counted: int
    found: int


def differences(workspace_id: str) -> list[Difference]:
    """Compare all counters of a workspace with its rows, however many there are."""
    values: dict[str, Any] = {"workspace": to_uuid(workspace_id, prefix="ws_"), "ever": counters.ALL_TIME}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute(COMPARE, values)
        return [Difference(*row) for row in cursor.fetchall()]


@transaction.atomic
def repair(workspace_id: str) -> Sequence[Difference]:
    """Add what is missing to the counters; return what was different.

    A difference stays the same while emails come and go, for those change rows and counters together.
    """
    with connection.cursor() as cursor:
        cursor.execute(LOCK)
    found = differences(workspace_id)
    counters.add((counters.CounterKey(workspace_id, one.hour, one.key), one.found - one.counted) for one in found)
    return found
