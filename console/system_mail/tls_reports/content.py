"""Content of a TLS report (RFC 8460, section 4): the policies of a domain in a day, and their sessions."""

import gzip
import itertools
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from typing import Any

from django.conf import settings

from core.delivery.bounces.replies import TlsPolicyKind, TlsResult
from emails.models import MtaStsPolicy
from emails.tls_policies.report_counts import SessionCount

POLICY_TYPES = {TlsPolicyKind.NONE: "no-policy-found", TlsPolicyKind.STS: "sts", TlsPolicyKind.DANE: "tlsa"}
ONE_SECOND = timedelta(seconds=1)


def compose_content(policy: MtaStsPolicy, counts: Sequence[SessionCount], *, day: date) -> dict[str, Any]:
    """Return the report of a domain as JSON.

    policy: the row of the domain.
    counts: its sessions of the day, by policy.
    """
    start, end = _bounds(day)
    by_policy = itertools.groupby(counts, key=lambda one: one.policy)
    return {
        "organization-name": settings.SYSTEM_NAME,
        "date-range": {"start-datetime": _timestamp(start), "end-datetime": _timestamp(end)},
        "contact-info": sender_address(),
        "report-id": f"{day.isoformat()}.{policy.domain}@{settings.TLSRPT_DOMAIN}",
        "policies": [_policy(policy, kind, list(found)) for kind, found in by_policy],
    }


def compress(content: dict[str, Any]) -> bytes:
    """Return the file of a report: the same bytes for the same report."""
    return gzip.compress(json.dumps(content, indent=1).encode(), mtime=0)


def file_name(domain: str, day: date) -> str:
    """Return the name of the file (section 5.1)."""
    start, end = (int(one.timestamp()) for one in _bounds(day))
    return f"{settings.TLSRPT_DOMAIN}!{domain}!{start}!{end}!001.json.gz"


def sender_address() -> str:
    """Return the address that reports come from, at which a domain that sends email must have a mailbox (RFC 2142)."""
    return f"postmaster@{settings.TLSRPT_DOMAIN}"


def count_sessions(counts: Iterable[SessionCount], *, successful: bool) -> int:
    return sum(one.count for one in counts if (one.result is TlsResult.SUCCESS) is successful)


def _policy(row: MtaStsPolicy, kind: TlsPolicyKind, counts: Sequence[SessionCount]) -> dict[str, Any]:
    described: dict[str, Any] = {"policy-type": POLICY_TYPES[kind], "policy-domain": row.domain}
    if kind is TlsPolicyKind.STS and row.mode:
        mx = [f"mx: {name}" for name in row.mx]
        described["policy-string"] = ["version: STSv1", f"mode: {row.mode}", *mx, f"max_age: {row.max_age}"]
        described["mx-host"] = row.mx
    if kind is TlsPolicyKind.DANE:
        described["policy-string"] = row.tlsa
    return {
        "policy": described,
        "summary": {
            "total-successful-session-count": count_sessions(counts, successful=True),
            "total-failure-session-count": count_sessions(counts, successful=False),
        },
        "failure-details": [_failure(one) for one in counts if one.result is not TlsResult.SUCCESS],
    }


def _failure(count: SessionCount) -> dict[str, Any]:
    result, _, reason = count.result.partition("/")
    coded = {"failure-reason-code": reason} if reason else {}
    return {"result-type": result, "failed-session-count": count.count, **coded}


def _bounds(day: date) -> tuple[datetime, datetime]:
    """Return the first and the last second of a UTC day."""
    start = datetime.combine(day, time_of_day.min, UTC)
    return start, start + timedelta(days=1) - ONE_SECOND


def _timestamp(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
