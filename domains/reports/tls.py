"""TLS reports about a domain, summed (RFC 8460)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import Any

from core.lib.ids import to_uuid
from core.lib.sql import run
from domains.models import Domain
from domains.reports.organizations import organization_name

# The row without a result has the sessions of its policy; the others have those of them that failed with a result.
TLS_SUMS = """
SELECT p.organization, r.policy_type, r.result_type, sum(r.successful)::bigint, sum(r.failed)::bigint
  FROM domains_tlsrow r JOIN domains_domainreport p ON p.id = r.report_id
 WHERE r.domain_id = %(domain)s AND r.day >= %(first)s AND r.day < %(end)s
 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
# Groups that are shown; the sums have all of them.
MAX_GROUPS = 500


@dataclass(frozen=True)
class FailedSessions:
    """Sessions that failed with a result, such as certificate-expired."""

    type: str
    sessions: int


@dataclass(frozen=True)
class TlsGroup:
    """Sessions of an organization to the domain's mail hosts under one type of policy. results: of the failed ones."""

    organization: str
    policy_type: str
    successful: int
    failed: int
    results: Sequence[FailedSessions]

    @property
    def name(self) -> str:
        return organization_name(self.organization)


@dataclass(frozen=True)
class TlsSummary:
    """The TLS reports of first ≤ day < end, the groups with most failed sessions first."""

    first: date
    end: date
    all_groups: Sequence[TlsGroup]

    @property
    def groups(self) -> Sequence[TlsGroup]:
        """Those that are shown."""
        return self.all_groups[:MAX_GROUPS]

    @property
    def successful(self) -> int:
        return sum(group.successful for group in self.all_groups)

    @property
    def failed(self) -> int:
        return sum(group.failed for group in self.all_groups)


def read_tls_summary(domain: Domain, *, first: date, end: date) -> TlsSummary:
    """Return the sums of TLS reports about a domain, for first ≤ day < end."""
    sums = run(TLS_SUMS, {"domain": to_uuid(domain.id, prefix="dom_"), "first": first, "end": end})
    groups = [_group(*key, rows) for key, rows in groupby(sums, key=lambda row: (row[0], row[1]))]
    return TlsSummary(first, end, sorted(groups, key=lambda one: (-one.failed, -one.successful)))


def _group(organization: str, policy_type: str, rows: Iterable[tuple[Any, ...]]) -> TlsGroup:
    """Return the group of the rows of TLS_SUMS with an organization and a type of policy."""
    successful, failed, results = 0, 0, []
    for *_, result, successes, failures in rows:
        if result:
            results.append(FailedSessions(result, failures))
        else:
            successful, failed = successes, failures
    return TlsGroup(organization, policy_type, successful, failed, results)
