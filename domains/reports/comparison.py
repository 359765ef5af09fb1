"""DMARC reports of a domain, compared with the messages that were sent from it (docs/decisions/0398)."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property

from core.counters.acceptances import read_accepted
from core.lib.coded_texts import CodedText
from core.lib.ids import to_uuid
from core.lib.sql import run
from domains.models import Domain
from domains.reports.classification import FROM_OUR_SERVERS, OTHERS, OWN, Whose
from domains.reports.organizations import organization_name

# Organizations that are shown; the sums have all of them.
MAX_ORGANIZATIONS = 100
SUMS = """
SELECT day, organization, whose, sum(messages)::bigint, sum(aligned)::bigint FROM (
    SELECT r.day, p.organization, r.whose, r.count AS messages,
           CASE WHEN 'pass' IN (r.dkim, r.spf) THEN r.count ELSE 0 END AS aligned
      FROM domains_dmarcrow r JOIN domains_domainreport p ON p.id = r.report_id
     WHERE r.domain_id = %(domain)s AND r.day >= %(first)s AND r.day < %(end)s
    UNION ALL
    SELECT day, organization, whose, messages, aligned FROM domains_dmarcday
     WHERE domain_id = %(domain)s AND day >= %(first)s AND day < %(end)s
) rows GROUP BY 1, 2, 3
"""
OTHER_SOURCES = """
SELECT p.organization, count(DISTINCT r.source_ip)
  FROM domains_dmarcrow r JOIN domains_domainreport p ON p.id = r.report_id
 WHERE r.domain_id = %(domain)s AND r.day >= %(first)s AND r.day < %(end)s AND r.whose = ANY(%(others)s)
 GROUP BY 1
"""


@dataclass(frozen=True)
class ReportedSum:
    """Messages of one organization's reports about a UTC day. aligned: those that passed DMARC."""

    day: date
    organization: str
    whose: str
    messages: int
    aligned: int


@dataclass(frozen=True)
class Reported:
    """Sums of reported messages, and the number of messages that were sent.

    sent: that hosts accepted, by the own counters.
    """

    sums: Sequence[ReportedSum]
    sent: int

    @cached_property
    def by_class(self) -> Mapping[str, int]:
        """The messages of each class of Whose."""
        counts = Counter(dict.fromkeys(Whose.values, 0))
        for one in self.sums:
            counts[one.whose] += one.messages
        return counts

    @property
    def messages(self) -> int:
        return sum(one.messages for one in self.sums)

    @property
    def reported(self) -> int:
        """The messages that were sent from here."""
        return self.messages_of(OWN)

    @property
    def others(self) -> int:
        """The messages of other senders."""
        return self.messages_of(OTHERS)

    def messages_of(self, classes: Collection[str]) -> int:
        return sum(one.messages for one in self.sums if one.whose in classes)

    def aligned_of(self, classes: Collection[str]) -> int:
        return sum(one.aligned for one in self.sums if one.whose in classes)

    @property
    def aligned(self) -> int:
        """Those of `reported` that passed DMARC."""
        return self.aligned_of(OWN)

    @property
    def aligned_share(self) -> float | None:
        """The share of the messages from our servers that passed DMARC; None without any."""
        total = self.messages_of(FROM_OUR_SERVERS)
        return self.aligned_of(FROM_OUR_SERVERS) / total if total else None


@dataclass(frozen=True)
class OrganizationReport(Reported):
    """The reports of an organization. sources: the addresses of other senders."""

    organization: str = ""
    sources: int = 0

    @property
    def name(self) -> str:
        return organization_name(self.organization)

    @property
    def summary(self) -> CodedText:
        """A sentence that compares the sent and the reported messages."""
        values = {
            "organization": self.name,
            "sent": f"{self.sent:,}",
            "reported": f"{self.reported:,}",
            "percent": f"{floored_percent(self.aligned / self.reported):.1f}" if self.reported else "",
        }
        text = CodedText("domains.reports_compared" if self.reported else "domains.reports_of_none", **values)
        if not self.others:
            return CodedText("domains.reports_no_others", text=text)
        code = "domains.reports_other" if self.others == 1 else "domains.reports_others"
        if self.others > 1 and self.sources == 1:
            code = "domains.reports_others_of_one"
        return CodedText(code, text=text, others=f"{self.others:,}", sources=f"{self.sources:,}")


@dataclass(frozen=True)
class DayReport(Reported):
    day: date = field(kw_only=True)


@dataclass(frozen=True)
class DmarcComparison(Reported):
    """The reports about a domain for first ≤ day < end.

    organizations: those that reported, most messages first.
    unreported: messages that were sent to organizations without a report.
    """

    first: date = field(kw_only=True)
    end: date = field(kw_only=True)
    all_organizations: Sequence[OrganizationReport] = field(kw_only=True)
    days: Sequence[DayReport] = field(kw_only=True)
    unreported: int = field(kw_only=True)

    @property
    def organizations(self) -> Sequence[OrganizationReport]:
        return self.all_organizations[:MAX_ORGANIZATIONS]

    @property
    def coverage(self) -> float | None:
        """The share of the messages that were sent to organizations with a report; None without any."""
        return (self.sent - self.unreported) / self.sent if self.sent else None


def floored_percent(share: float) -> float:
    """Return a share in percent with one decimal, not rounded up: 100.0 % are all."""
    # Rounded at the ninth decimal, as 0.283 * 1000 is less than 283.
    return math.floor(round(1000 * share, 9)) / 10


def read_comparison(domain: Domain, *, first: date, end: date) -> DmarcComparison:
    """Return the reports about a domain and the messages that were sent from it, for first ≤ day < end."""
    values = {"domain": to_uuid(domain.id, prefix="dom_"), "first": first, "end": end}
    sums = [ReportedSum(*row) for row in run(SUMS, values)]
    sources = dict(run(OTHER_SOURCES, {**values, "others": [whose.value for whose in OTHERS]}))
    accepted = read_accepted(domain.workspace_id, domain=domain.name, first=first, end=end)
    by_organization, by_day = defaultdict[str, list[ReportedSum]](list), defaultdict[date, list[ReportedSum]](list)
    for one in sums:
        by_organization[one.organization].append(one)
        by_day[one.day].append(one)
    sent_to, sent_on = Counter[str](), Counter[date]()
    for (day, organization), count in accepted.items():
        sent_to[organization] += count
        sent_on[day] += count
    organizations = [
        OrganizationReport(rows, sent_to[key], organization=key, sources=sources.get(key, 0))
        for key, rows in by_organization.items()
    ]
    return DmarcComparison(
        sums,
        sent_to.total(),
        first=first,
        end=end,
        all_organizations=sorted(organizations, key=lambda one: (-one.messages, one.organization)),
        days=[DayReport(by_day[day], sent_on[day], day=day) for day in sorted(by_day.keys() | sent_on.keys())],
        unreported=sum(count for key, count in sent_to.items() if key not in by_organization),
    )
