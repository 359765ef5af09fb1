"""A report as it was read, and the errors of one that cannot be counted."""

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any


class UnreadableReport(ValueError):
    """Raised for bytes that have no report of a known format."""


class ReportRefused(ValueError):
    """Raised for a report that exceeds a limit, or has what no report needs, such as a document type."""


@dataclass(frozen=True)
class DkimResult:
    domain: str
    selector: str
    result: str


@dataclass(frozen=True)
class SpfResult:
    domain: str
    scope: str
    result: str


@dataclass(frozen=True)
class PolicyReason:
    type: str
    comment: str


@dataclass(frozen=True)
class ReadDmarcRow:
    """Messages with the same results from one address. source_ip: None if it is invalid. Results are in lower case."""

    source_ip: str | None
    count: int
    disposition: str
    dkim: str
    spf: str
    header_from: str
    envelope_from: str = ""
    envelope_to: str = ""
    dkim_results: tuple[DkimResult, ...] = ()
    spf_results: tuple[SpfResult, ...] = ()
    reasons: tuple[PolicyReason, ...] = ()


@dataclass(frozen=True)
class ReadTlsRow:
    """Sessions with one result under one policy; the row without a result_type has the totals of the policy."""

    policy_type: str
    policy_domain: str
    mx_hosts: tuple[str, ...] = ()
    result_type: str = ""
    successful: int = 0
    failed: int = 0
    sending_ip: str | None = None
    receiving_ip: str | None = None
    receiving_host: str = ""
    reason_code: str = ""


@dataclass(frozen=True)
class ReadReport:
    """A report of one format. Texts have at most 1 KiB.

    kind: `dmarc` or `tls`, which the rows are of.
    contact: the address in email or contact-info.
    domains: those that the report is about, in lower case.
    policy: policy_published of DMARC, by the names of its elements; empty for TLS.
    """

    kind: str
    reporter: str
    contact: str
    report_id: str
    begin_at: datetime
    end_at: datetime
    domains: tuple[str, ...]
    policy: dict[str, str]
    rows: tuple[ReadDmarcRow, ...] | tuple[ReadTlsRow, ...]

    @property
    def reporter_domain(self) -> str:
        """The domain of the contact; empty without an address."""
        return self.contact.rpartition("@")[2].strip(" >").lower() if "@" in self.contact else ""

    @property
    def digest(self) -> bytes:
        """A hash of the range and the rows in any order: the same for a report that was sent twice."""
        rows = sorted(json.dumps(asdict(row)) for row in self.rows)
        content: list[Any] = [self.kind, self.begin_at.isoformat(), self.end_at.isoformat(), rows]
        return hashlib.sha256(json.dumps(content).encode()).digest()
