"""Counted reports about a domain, as they are after reading, and messages that were sent from it."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from core.counters import counters
from core.counters.acceptances import AcceptedGroup, acceptance_changes
from core.lib.ids import new_id
from domains.models import DmarcRow, Domain, DomainReport, TlsRow
from domains.reports.classification import classify_rows
from domains.reports.organizations import organization_of
from domains.reports.reading.results import ReadReport

# One of SPF_MECHANISMS in the tests of reports, and addresses elsewhere.
OUR_IP, OTHER_IP, THIRD_IP = "198.51.100.7", "192.0.2.7", "192.0.2.8"
SELECTOR = "pr1"


def midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)


def signature(domain: Domain, *, selector: str = SELECTOR, result: str = "pass", name: str = "") -> dict[str, str]:
    return {"domain": name or domain.name, "selector": selector, "result": result}


def spf(name: str, result: str = "pass") -> dict[str, str]:
    return {"domain": name, "scope": "mfrom", "result": result}


def row(domain: Domain, count: int = 1, *, ip: str | None = OUR_IP, **values: Any) -> dict[str, Any]:
    """Return a row of our own mail; values replace its columns."""
    own = {"dkim": "pass", "spf": "pass", "dkim_results": [signature(domain)], "spf_results": []}
    return {"source_ip": ip, "count": count, "disposition": "none", "header_from": domain.name, **own, **values}


def broken(domain: Domain, count: int = 1, **values: Any) -> dict[str, Any]:
    return row(domain, count, **{"dkim": "fail", "spf": "fail", "dkim_results": []} | values)


def forwarded(domain: Domain, count: int = 1, **values: Any) -> dict[str, Any]:
    return row(domain, count, **{"ip": OTHER_IP, "spf": "fail"} | values)


def foreign(domain: Domain, count: int = 1, **values: Any) -> dict[str, Any]:
    return row(domain, count, **{"ip": OTHER_IP, "dkim": "fail", "spf": "fail", "dkim_results": []} | values)


def add_report(
    domain: Domain,
    *rows: Mapping[str, Any],
    day: date,
    reporter: str = "google.com",
    policy: str = "none",
    policy_published: Mapping[str, str] | None = None,
    state: str = DomainReport.ReadingState.READ,
) -> DomainReport:
    """Store a report with its rows, and classify them."""
    begin, end = midnight(day), midnight(day + timedelta(days=1)) - timedelta(seconds=1)
    id_ = new_id("r_")
    published = dict(policy_published or {"domain": domain.name, "p": policy})
    read = ReadReport("dmarc", reporter, f"reports@{reporter}", id_, begin, end, (domain.name,), published, ())
    report = DomainReport.objects.create(
        domain=domain, kind="dmarc", state=state, source=b"", size=0, reporter=reporter, report_id=id_, begin_at=begin,
        end_at=end, policy=published, organization=organization_of(read), read_at=begin,
    )  # fmt: skip
    DmarcRow.objects.bulk_create([DmarcRow(report=report, domain=domain, day=day, **values) for values in rows])
    classify_rows(report)
    return report


def add_tls_report(domain: Domain, *rows: Mapping[str, Any], day: date, reporter: str = "google.com") -> None:
    begin = midnight(day)
    read = ReadReport("tls", reporter, f"reports@{reporter}", "", begin, begin, (domain.name,), {}, ())
    report = DomainReport.objects.create(
        domain=domain, kind="tls", state="read", source=b"", size=0, reporter=reporter, report_id=new_id("r_"),
        begin_at=begin, end_at=begin, organization=organization_of(read),
    )  # fmt: skip
    TlsRow.objects.bulk_create(
        TlsRow(report=report, domain=domain, day=day, policy_domain=domain.name, **values) for values in rows
    )


def count_sent(domain: Domain, count: int, *, day: date, organization: str = "google") -> None:
    """Count messages that an organization accepted on a day."""
    group = AcceptedGroup(domain.workspace_id, domain.name, organization)
    counters.add(acceptance_changes({group: count}, at=midnight(day) + timedelta(hours=7)))
