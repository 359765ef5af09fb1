"""A report as it was read, and the errors of one that cannot be counted."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

MAX_ROWS = 50_000
MAX_TEXT_BYTES = 1024


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
    """A report of one format. Texts have at most MAX_TEXT_BYTES.

    kind: `dmarc` or `tls`, which the rows are of.
    contact: the address in email or contact-info.
    domains: those that the report is about, as it names them.
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
        """The domain of the contact in lower case; empty without an address."""
        return self.contact.rpartition("@")[2].strip(" >").lower() if "@" in self.contact else ""

    @property
    def digest(self) -> bytes:
        """A hash of the range and the rows in any order: the same for a report that was sent twice."""
        rows = "\n".join(sorted(map(repr, self.rows)))
        return hashlib.sha256(f"{self.kind} {self.begin_at} {self.end_at}\n{rows}".encode()).digest()


def limit_text(text: str | None) -> str:
    """Return a text on one line without control characters, cut to MAX_TEXT_BYTES of UTF-8."""
    if not text or not (text := text.strip()):
        return ""
    if not text.isprintable():
        text = " ".join("".join(c if c.isprintable() else " " for c in text[:MAX_TEXT_BYTES]).split())
    if len(text) * 4 <= MAX_TEXT_BYTES:
        return text
    return text[:MAX_TEXT_BYTES].encode("utf-8", "replace")[:MAX_TEXT_BYTES].decode("utf-8", "ignore")
