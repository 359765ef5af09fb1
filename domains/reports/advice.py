"""Advice on the DMARC policy of a domain: none, then quarantine, then reject (docs/decisions/0398).

Each requirement has a sentence. Nothing changes DNS: the owner publishes the record.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from core.lib.coded_texts import CodedText
from core.lib.ids import to_uuid
from core.lib.sql import run
from domains.models import Domain
from domains.record_checks.results import RecordStatus, VerificationResult, from_json
from domains.record_checks.tags import InvalidTags, parse_tags
from domains.records import DnsRecord, list_records
from domains.reports.classification import Whose
from domains.reports.comparison import DmarcComparison, floored_percent, read_comparison
from domains.reports.sources import MailSource, read_sources

NONE, QUARANTINE, REJECT = "none", "quarantine", "reject"
NEXT = {"": NONE, NONE: QUARANTINE, QUARANTINE: REJECT}
# A policy in test is applied one step weaker (RFC 9989, section 4.7).
TESTED = {QUARANTINE: NONE, REJECT: QUARANTINE}
DAYS = 14
# A report comes a day or two after the mail.
MAX_AGE = timedelta(days=3)
MIN_ORGANIZATIONS, MIN_COVERAGE = 3, 0.8
MIN_ALIGNED = 0.99
# Mail of one unknown source: above either of them, it may be that of the owner.
MAX_UNKNOWN, MAX_UNKNOWN_SHARE = 100, 0.01
MAX_NAMED = 3
HISTORY = timedelta(days=90)
# The policy by UTC day, as it applies to the domain: that of a domain above may have one for its subdomains.
POLICIES = """
SELECT (begin_at AT TIME ZONE 'UTC')::date AS day,
       lower(CASE WHEN policy ->> 'domain' IS DISTINCT FROM %(name)s THEN coalesce(nullif(policy ->> 'sp', ''),
                  policy ->> 'p') ELSE policy ->> 'p' END) AS policy
  FROM domains_domainreport
 WHERE domain_id = %(domain)s AND kind = 'dmarc' AND state = 'read' AND begin_at >= %(since)s AND begin_at < %(until)s
 GROUP BY 1, 2 ORDER BY 1, 2
"""


@dataclass(frozen=True)
class Requirement:
    """A requirement of a stricter policy. code: stable."""

    code: str
    is_met: bool
    text: CodedText


@dataclass(frozen=True)
class PolicyAdvice:
    """The advice on a policy.

    policy: the present one; empty without a record.
    recommended: the one to publish, which may be the present one.
    summary: one sentence.
    requirements: of the next policy; empty without one, or without a record.
    notes: what else to know before the change.
    record: the record to publish, with its value, if the policy is to change; None otherwise.
    """

    policy: str
    recommended: str
    summary: CodedText
    requirements: Sequence[Requirement] = ()
    notes: Sequence[CodedText] = ()
    record: DnsRecord | None = None


def advise_policy(domain: Domain, *, today: date | None = None) -> PolicyAdvice:
    """Return the advice by the reports of the last days. today: in UTC, by default now."""
    record = next(one for one in list_records(domain) if one.record == "DMARC")
    on = today or datetime.now(UTC).date()
    policies = _read_policies(domain, until=on + timedelta(days=1))
    policy = _published_policy(domain, policies)
    following = NEXT.get(policy)
    if not policy:
        summary = CodedText("domains.advice_publish")
        return PolicyAdvice(policy, NONE, summary, record=record)
    if following is None:
        return PolicyAdvice(policy, policy, CodedText("domains.advice_done"))
    if not policies:
        return PolicyAdvice(policy, policy, CodedText("domains.advice_no_reports", policy=policy))
    last = policies[-1][0]
    first = last - timedelta(days=DAYS - 1)
    comparison = read_comparison(domain, first=first, end=last + timedelta(days=1))
    sources = read_sources(domain, first=first, end=last + timedelta(days=1))
    requirements = [
        _recent(last, on),
        _lasting(policy, policies),
        _covered(comparison),
        _aligned(comparison),
        _known(comparison, sources),
    ]
    if not all(one.is_met for one in requirements):
        return PolicyAdvice(policy, policy, CodedText("domains.advice_wait", policy=policy), requirements)
    changed = replace(record, value=_with_policy(record.value, following))
    summary = CodedText("domains.advice_tighten", policy=policy, following=following)
    return PolicyAdvice(policy, following, summary, requirements, [*_notes(sources)], changed)


def _read_policies(domain: Domain, *, until: date) -> list[tuple[date, str]]:
    """Return the policies by day; anybody may write a report about the future, which does not count."""
    days = {"since": _midnight(until - HISTORY), "until": _midnight(until)}
    values = {"domain": to_uuid(domain.id, prefix="dom_"), "name": domain.name, **days}
    return [(day, policy or "") for day, policy in run(POLICIES, values)]


def _published_policy(domain: Domain, policies: Sequence[tuple[date, str]]) -> str:
    """Return the policy that DNS has for a domain, by the last check; without its answer, that of the last report."""
    result = from_json(VerificationResult, domain.findings, domain.finding_codes)
    if result is None or result.dmarc.status is RecordStatus.UNKNOWN:
        return policies[-1][1] if policies else ""
    if result.dmarc.status is not RecordStatus.VALID:
        return ""
    try:
        tags = {name.lower(): value.lower() for name, value in parse_tags(result.dmarc.found or "").items()}
    except InvalidTags:
        return ""
    # Only a policy of the domain itself is a value to publish; that of a domain above may have one for subdomains.
    is_inherited = result.dmarc.value is None
    policy = (tags.get("sp") if is_inherited else None) or tags.get("p", NONE)
    return TESTED.get(policy, policy) if tags.get("t") == "y" else policy


def _recent(last: date, today: date) -> Requirement:
    return Requirement("recent", today - last <= MAX_AGE, CodedText("domains.advice_recent", day=last.isoformat()))


def _lasting(policy: str, policies: Sequence[tuple[date, str]]) -> Requirement:
    """Require reports that name the policy, and no other one, for DAYS."""
    others = [day for day, other in policies if other != policy]
    days = [day for day, other in policies if other == policy and (not others or day > others[-1])]
    count = (days[-1] - days[0]).days + 1 if days else 0
    text = CodedText("domains.advice_lasting", policy=policy, days=f"{count}", needed=f"{DAYS}")
    return Requirement("lasting", count >= DAYS, text)


def _covered(comparison: DmarcComparison) -> Requirement:
    count, coverage = len(comparison.all_organizations), comparison.coverage or 0
    values = {"count": f"{count}", "percent": f"{floored_percent(coverage):.1f}"}
    text = CodedText(
        "domains.advice_covered", **values, needed=f"{MIN_ORGANIZATIONS}", share=f"{MIN_COVERAGE:.0%}"[:-1]
    )
    return Requirement("covered", count >= MIN_ORGANIZATIONS or coverage >= MIN_COVERAGE, text)


def _aligned(comparison: DmarcComparison) -> Requirement:
    share = comparison.aligned_share
    if share is None:
        return Requirement("aligned", False, CodedText("domains.advice_none_of_ours"))
    text = CodedText(
        "domains.advice_aligned", percent=f"{floored_percent(share):.1f}", needed=f"{MIN_ALIGNED:.0%}"[:-1]
    )
    return Requirement("aligned", share >= MIN_ALIGNED, text)


def _known(comparison: DmarcComparison, sources: Sequence[MailSource]) -> Requirement:
    most = min(MAX_UNKNOWN, comparison.messages * MAX_UNKNOWN_SHARE)
    unknown = [one for one in sources if one.whose == Whose.UNKNOWN and one.messages > most]
    if not unknown:
        return Requirement("known", True, CodedText("domains.advice_known"))
    names = ", ".join(f"{one.ip or '?'} ({one.messages:,})" for one in unknown[:MAX_NAMED])
    text = CodedText("domains.advice_unknown", count=f"{len(unknown)}", names=names)
    return Requirement("known", False, text)


def _notes(sources: Sequence[MailSource]) -> Iterator[CodedText]:
    """Yield a note about each known sender whose mail a stricter policy affects."""
    failing = {one.label: one.messages - one.aligned for one in sources if one.whose == Whose.KNOWN}
    for label, count in failing.items():
        if count:
            yield CodedText("domains.advice_affected", label=label, count=f"{count:,}")


def _with_policy(value: str, policy: str) -> str:
    """Return a record with another policy; a test and a share of the mail end with it."""
    tags = {name: text for name, text in parse_tags(value).items() if name.lower() not in {"t", "pct"}}
    changed = {name: policy if name.lower() == "p" else text for name, text in tags.items()}
    return "; ".join(f"{name}={text}" for name, text in ({"v": "DMARC1", "p": policy} | changed).items()) + ";"


def _midnight(day: date) -> datetime:
    return datetime.combine(day, datetime.min.time(), UTC)
