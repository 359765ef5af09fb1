"""TLS reports: RFC 8460, section 4.4."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import ip_address
from itertools import islice
from typing import Any

from domains.reports.reading.results import (
    MAX_ROWS,
    ReadReport,
    ReadTlsRow,
    ReportRefused,
    UnreadableReport,
    limit_text,
)

# The values in a document, each of which takes memory.
MAX_VALUES = 16 * MAX_ROWS
MAX_COUNT = 10**12
MAX_KIND = 32
MAX_RESULT = 64
MAX_HOSTS = 20


def read_tls(text: str) -> ReadReport:
    """Return the report of a document in JSON. Raises UnreadableReport and ReportRefused."""
    if text.count("{") + text.count("[") + text.count(",") > MAX_VALUES:
        raise ReportRefused("The report has too many values.")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableReport("The JSON is malformed.") from error
    policies = _member(document, "policies", list)
    rows = tuple(islice((row for policy in policies for row in _read_policy(policy)), MAX_ROWS + 1))
    if len(rows) > MAX_ROWS:
        raise ReportRefused(f"The report has more than {MAX_ROWS} rows.")
    report_id = _text(document, "report-id")
    if not report_id or not rows:
        raise UnreadableReport("The JSON is no TLS report: it has no report-id or no policies.")
    dates = _member(document, "date-range", dict)
    contact = _text(document, "contact-info")
    return ReadReport(
        kind="tls",
        reporter=_text(document, "organization-name") or contact.rpartition("@")[2],
        contact=contact,
        report_id=report_id,
        begin_at=_time(_text(dates, "start-datetime")),
        end_at=_time(_text(dates, "end-datetime")),
        domains=tuple(dict.fromkeys(row.policy_domain for row in rows)),
        policy={},
        rows=rows,
    )


def _read_policy(item: Any) -> Iterator[ReadTlsRow]:
    policy, summary = _member(item, "policy", dict), _member(item, "summary", dict)
    hosts = policy.get("mx-host")
    listed = hosts if isinstance(hosts, list) else [hosts or ""]
    totals = ReadTlsRow(
        policy_type=_text(policy, "policy-type")[:MAX_KIND].lower(),
        policy_domain=_text(policy, "policy-domain").lower(),
        mx_hosts=tuple(limit_text(host) for host in listed[:MAX_HOSTS] if isinstance(host, str) and host),
        successful=_count(summary.get("total-successful-session-count", 0)),
        failed=_count(summary.get("total-failure-session-count", 0)),
    )
    yield totals
    for failure in _member({"failure-details": [], **item}, "failure-details", list):
        yield replace(
            totals,
            result_type=_text(failure, "result-type")[:MAX_RESULT].lower() or "unspecified",
            successful=0,
            failed=_count(failure.get("failed-session-count", 0)),
            sending_ip=_address(_text(failure, "sending-mta-ip")),
            receiving_ip=_address(_text(failure, "receiving-ip")),
            receiving_host=_text(failure, "receiving-mx-hostname").lower(),
            reason_code=_text(failure, "failure-reason-code"),
        )


def _member(value: Any, name: str, kind: type) -> Any:
    member = value.get(name) if isinstance(value, dict) else None
    if not isinstance(member, kind):
        raise UnreadableReport(f"The JSON is no TLS report: {name} is missing.")
    return member


def _text(value: Any, name: str) -> str:
    if not isinstance(value, dict):
        raise UnreadableReport("The JSON is no TLS report: an object is missing.")
    text = value.get(name)
    return limit_text(text) if isinstance(text, str) else ""


def _count(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
        raise UnreadableReport("A count of sessions is out of range.")
    return value


def _address(text: str) -> str | None:
    try:
        return None if "%" in text else str(ip_address(text))
    except ValueError:
        return None


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UnreadableReport("The report has no date-range.") from error
