"""Counters of messages that a host accepted, by sending domain, UTC day and mail organization (docs/decisions/0398).

Compared with the DMARC reports of the same organizations. As histograms of latencies, the counters of a domain belong
to an id of its own instead of to the workspace.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache

from core.counters import counters
from core.counters.slices import CACHE_SIZE, Dimension, slice_id
from core.lib.ids import from_uuid

# The first part of keys: accepted.google counts messages that hosts of Google accepted.
PREFIX = "accepted."
# The column of keys has 80 characters; organizations with longer names are counted together.
MAX_ORGANIZATION = 70
OTHER_ORGANIZATIONS = "other"
# Rows (day, organization, count) of a domain, of %(first)s ≤ day < %(end)s.
ACCEPTED = f"""
SELECT day, substr(key, {len(PREFIX) + 1}), sum(n)::bigint FROM (
    SELECT day, key, count AS n FROM analytics_tallyday
     WHERE workspace_id = %(workspace)s AND day >= %(first)s AND day < %(end)s
    UNION ALL
    SELECT (hour AT TIME ZONE 'UTC')::date, key, change FROM analytics_tallydelta
     WHERE workspace_id = %(workspace)s AND hour >= %(first)s::timestamp AT TIME ZONE 'UTC'
       AND hour < %(end)s::timestamp AT TIME ZONE 'UTC'
) counted GROUP BY 1, 2 ORDER BY 1, 2
"""  # noqa: S608 - constants


@dataclass(frozen=True)
class AcceptedGroup:
    """Messages that are counted together.

    organization: the key of a receiver (core.delivery.receivers).
    """

    workspace_id: str
    domain: str
    organization: str


@lru_cache(maxsize=CACHE_SIZE)
def acceptances_id(workspace_id: str, *, domain: str) -> str:
    """Return the workspace id of the counters of a sending domain."""
    return from_uuid(slice_id(workspace_id, Dimension.ACCEPTED, domain), prefix="ws_")


def counted_organization(organization: str) -> str:
    """Return the name under which the messages that an organization accepted are counted."""
    return organization if len(organization) <= MAX_ORGANIZATION else OTHER_ORGANIZATIONS


def acceptance_changes(counts: Mapping[AcceptedGroup, int], *, at: datetime) -> Iterator[counters.CounterChange]:
    """Yield the counter changes of messages that were accepted at a time."""
    for group, count in counts.items():
        counted = acceptances_id(group.workspace_id, domain=group.domain)
        yield counters.CounterKey(counted, at, f"{PREFIX}{counted_organization(group.organization)}"), count


def read_accepted(workspace_id: str, *, domain: str, first: date, end: date) -> dict[tuple[date, str], int]:
    """Return the messages of a sending domain by UTC day and organization, for first ≤ day < end."""
    rows = counters.read(ACCEPTED, acceptances_id(workspace_id, domain=domain), first=first, end=end)
    return {(day, organization): count for day, organization, count in rows}
