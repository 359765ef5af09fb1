"""Counts of sessions for TLS reports: one a recipient domain, policy, result and day (docs/decisions/0399).

They are counters, like those of outcomes, so that no row of a large receiver's domain is locked by all workers. Each
domain has an id in place of a workspace.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache

from core.counters import counters
from core.counters.slices import CACHE_SIZE, Dimension, slice_id
from core.delivery.bounces.replies import DeliveryOutcome, TlsPolicyKind, TlsResult
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run

PREFIX = "tlsrpt"
COUNTS = """
SELECT workspace_id, key, sum(n)::bigint FROM (
    SELECT workspace_id, key, count AS n FROM analytics_tallyday
     WHERE workspace_id = ANY(%(ids)s::uuid[]) AND day = %(day)s
    UNION ALL
    SELECT workspace_id, key, change FROM analytics_tallydelta
     WHERE workspace_id = ANY(%(ids)s::uuid[]) AND (hour AT TIME ZONE 'UTC')::date = %(day)s
) counted GROUP BY 1, 2 ORDER BY 1, 2
"""
# Deltas of these days that are still to be folded are deleted a day later.
DELETE_HOURS = """
DELETE FROM analytics_tally
 WHERE workspace_id = ANY(%(ids)s::uuid[]) AND hour < (%(day)s::date + 1)::timestamp AT TIME ZONE 'UTC'
"""
DELETE_DAYS = "DELETE FROM analytics_tallyday WHERE workspace_id = ANY(%(ids)s::uuid[]) AND day <= %(day)s"


@dataclass(frozen=True)
class SessionCount:
    """The sessions with one domain that had one policy and one result in a day."""

    policy: TlsPolicyKind
    result: TlsResult
    count: int


def report_changes(outcome: DeliveryOutcome, *, now: datetime) -> Iterator[counters.CounterChange]:
    """Yield the counter change of an attempt to a domain that asks for TLS reports; others cost nothing."""
    tls = outcome.tls
    if tls and tls.domain and tls.result:
        yield counters.CounterKey(_counts_id(tls.domain), now, f"{PREFIX}.{tls.policy}.{tls.result}"), 1


def read_counts(domains: Sequence[str], *, day: date) -> dict[str, list[SessionCount]]:
    """Return the counts of a UTC day by domain, of those that have some."""
    by_id = {_counts_id(domain): domain for domain in domains}
    found: dict[str, list[SessionCount]] = {}
    for workspace_id, key, count in run(COUNTS, {"ids": _uuids(by_id), "day": day}):
        _, policy, result = key.split(".")
        domain = by_id[from_uuid(workspace_id, prefix="ws_")]
        found.setdefault(domain, []).append(SessionCount(TlsPolicyKind(policy), TlsResult(result), count))
    return found


def delete_counts(domains: Sequence[str], *, day: date) -> None:
    """Delete the counts of domains until the end of a UTC day."""
    values = {"ids": _uuids(map(_counts_id, domains)), "day": day}
    run(DELETE_HOURS, values)
    run(DELETE_DAYS, values)


@lru_cache(maxsize=CACHE_SIZE)
def _counts_id(domain: str) -> str:
    return from_uuid(slice_id(counters.SERVICE, Dimension.TLS_REPORT, domain), prefix="ws_")


def _uuids(ids: Iterable[str]) -> list[str]:
    return [str(to_uuid(one, prefix="ws_")) for one in ids]
