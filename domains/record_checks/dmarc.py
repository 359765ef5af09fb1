"""DMARC policies: the value to publish, and the check of the published one (RFC 9989; RFC 7489 is accepted too)."""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from core.lib.coded_texts import CodedText, join_sentences
from core.lib.network.public_suffixes import organizational_domain as find_organizational_domain
from core.lib.network.resolver import DnsError
from domains.record_checks.record_lookup import RecordLookup
from domains.record_checks.results import RecordCheck, RecordStatus, join_texts
from domains.record_checks.spf_evaluation import is_domain_name
from domains.record_checks.tags import InvalidTags, parse_tags

VERSION = "v=DMARC1"
TREE_WALK_LIMIT = 8
MAX_LENGTH = 2048
POLICY = re.compile("none|quarantine|reject", re.IGNORECASE)
ALIGNMENT = re.compile("[rs]", re.IGNORECASE)
URI = r"mailto:[^\s,!@]+@[A-Za-z0-9.-]+(![0-9]+[kmgt]?)?"
URIS = re.compile(rf"{URI}(\s*,\s*{URI})*", re.IGNORECASE)
RUA = re.compile(r"(;\s*rua\s*=\s*)", re.IGNORECASE)
REPORT_HOST = re.compile(r"mailto:[^\s,!@:]{1,64}@([A-Za-z0-9.-]+)", re.IGNORECASE)
# Receivers must send to two addresses (RFC 7489, section 6.2); the bound limits the lookups of a hostile record.
MAX_REPORT_HOSTS = 5
# The form of each tag's value, and the message that describes it. pct, rf and ri are in RFC 7489 only; current
# receivers ignore them.
TAG_RULES = {
    "p": (POLICY, "domains.dmarc_policies"),
    "sp": (POLICY, "domains.dmarc_policies"),
    "np": (POLICY, "domains.dmarc_policies"),
    "adkim": (ALIGNMENT, "domains.dmarc_alignments"),
    "aspf": (ALIGNMENT, "domains.dmarc_alignments"),
    "psd": (re.compile("[ynu]", re.IGNORECASE), "domains.dmarc_psd"),
    "t": (re.compile("[yn]", re.IGNORECASE), "domains.dmarc_flags"),
    "fo": (re.compile(r"[01ds](\s*:\s*[01ds])*", re.IGNORECASE), "domains.dmarc_reports"),
    "pct": (re.compile("[0-9]|[1-9][0-9]|100"), "domains.dmarc_percent"),
    "rua": (URIS, "domains.dmarc_addresses"),
    "ruf": (URIS, "domains.dmarc_addresses"),
}


@dataclass(frozen=True)
class DmarcPolicy:
    """A policy record and the domain it was found at."""

    name: str
    text: str


def build_dmarc_record(report_addresses: Sequence[str]) -> str:
    """Return the value for a domain without a policy: p=none, with aggregate reports to the given addresses."""
    reports = ",".join(f"mailto:{address.removeprefix('mailto:')}" for address in report_addresses)
    return f"{VERSION}; p=none;" + (f" rua={reports};" if reports else "")


def add_report_address(policy: str, address: str) -> str:
    """Return a policy with one more address for aggregate reports, the first one; unchanged if it has the address."""
    if address.lower() in policy.lower():
        return policy
    extended, count = RUA.subn(rf"\1mailto:{address},", policy, count=1)
    return extended if count else f"{policy.rstrip('; ')}; rua=mailto:{address};"


def is_dmarc(text: str) -> bool:
    """Check that receivers accept a text as a policy; they discard others (RFC 9989, section 4.10)."""
    name, _, value = text.partition(";")[0].partition("=")
    return name.strip() == "v" and value.strip() == "DMARC1"


def looks_like_dmarc(text: str) -> bool:
    return "v=dmarc" in text[:40].lower().replace(" ", "")


def find_dmarc_error(texts: Sequence[str]) -> str | None:
    """Return the error of the texts at a _dmarc name, of which at least one looks like a policy; None if valid."""
    policies = [text for text in texts if is_dmarc(text)]
    if len(policies) > 1:
        return CodedText("domains.dmarc_several", count=len(policies))
    if not policies:
        return CodedText("domains.dmarc_version")
    if len(policies[0]) > MAX_LENGTH:
        return CodedText("domains.record_too_long", count=len(policies[0]), limit=MAX_LENGTH)
    try:
        tags = parse_tags(policies[0])
    except InvalidTags as error:
        return CodedText("domains.invalid_record", error=error)
    if "p" not in tags and "rua" not in tags:
        return CodedText("domains.dmarc_no_policy")
    return next(_find_tag_errors(tags), None)


def _find_tag_errors(tags: Mapping[str, str]) -> Iterator[CodedText]:
    for name, value in tags.items():
        rule = TAG_RULES.get(name.lower())
        if rule and not rule[0].fullmatch(value):
            yield CodedText("domains.dmarc_value", tag=name, value=value[:60], rule=CodedText(rule[1]))


async def check_dmarc(lookup: RecordLookup) -> RecordCheck:
    """Check the policy of a domain, or the one that it inherits. Raises DnsError."""
    fqdn = f"_dmarc.{lookup.domain}"
    texts = [text for text in await lookup.dns.look_up_texts(fqdn) if looks_like_dmarc(text)]
    if texts:
        error = find_dmarc_error(texts)
        status = RecordStatus.INVALID if error else RecordStatus.VALID
        note = None if error else await _find_refused_reports(lookup, DmarcPolicy(lookup.domain, texts[0]))
        return RecordCheck(status, found=join_texts(texts), error=error, note=note, value=None if error else texts[0])
    policy = await _find_inherited_policy(lookup)
    if policy:
        return await _check_inherited_policy(lookup, policy)
    return await lookup.missing(
        fqdn,
        kind="TXT",
        is_expected=is_dmarc,
        message=CodedText("domains.no_dmarc", name=fqdn),
    )


async def _find_inherited_policy(lookup: RecordLookup) -> DmarcPolicy | None:
    names = parent_names(lookup.domain)
    answers = await asyncio.gather(*(lookup.dns.look_up_texts(f"_dmarc.{name}") for name in names))
    # More than one policy at a name is treated as none (RFC 9989, section 4.10).
    policies = [[text for text in texts if is_dmarc(text)] for texts in answers]
    above = [DmarcPolicy(name, texts[0]) for name, texts in zip(names, policies, strict=True) if len(texts) == 1]
    return select_policy(above)


async def _check_inherited_policy(lookup: RecordLookup, policy: DmarcPolicy) -> RecordCheck:
    error = find_dmarc_error([policy.text])
    is_found_by_all = policy.name == lookup.organizational_domain
    note = CodedText("domains.dmarc_inherited" if is_found_by_all else "domains.dmarc_above", domain=policy.name)
    refused = None if error else await _find_refused_reports(lookup, policy)
    return RecordCheck(
        RecordStatus.INVALID if error else RecordStatus.VALID,
        found=join_texts([policy.text]),
        error=error and CodedText("domains.dmarc_at", domain=policy.name, error=error),
        note=join_sentences(note, refused or ""),
    )


async def _find_refused_reports(lookup: RecordLookup, policy: DmarcPolicy) -> CodedText | None:
    """Return a note about report addresses in other domains that do not accept reports (RFC 7489, section 7.1)."""
    hosts = _foreign_report_hosts(policy, lookup.organizational_domain)
    accepted = await asyncio.gather(*(_accepts_reports(lookup, policy, host) for host in hosts))
    refusing = [host for host, is_accepted in zip(hosts, accepted, strict=True) if not is_accepted]
    if not refusing:
        return None
    return CodedText("domains.dmarc_foreign_reports", domain=policy.name, host=refusing[0], hosts=", ".join(refusing))


def _foreign_report_hosts(policy: DmarcPolicy, organizational_domain: str) -> list[str]:
    tags = parse_tags(policy.text)
    addresses = ",".join(tags.get(name, "") for name in ("rua", "ruf"))
    hosts = dict.fromkeys(host.lower().rstrip(".") for host in REPORT_HOST.findall(addresses))
    foreign = [host for host in hosts if find_organizational_domain(host) != organizational_domain]
    return [host for host in foreign if is_domain_name(_report_name(policy, host))][:MAX_REPORT_HOSTS]


def _report_name(policy: DmarcPolicy, host: str) -> str:
    """Return the name at which a host accepts reports about the domain of a policy."""
    return f"{policy.name}._report._dmarc.{host}"


async def _accepts_reports(lookup: RecordLookup, policy: DmarcPolicy, host: str) -> bool:
    """Return whether a host accepts reports about a domain; True without an answer of its name servers."""
    try:
        texts = await lookup.dns.look_up_texts(_report_name(policy, host))
    except DnsError:
        return True
    return any(map(is_dmarc, texts))


def parent_names(domain: str) -> list[str]:
    """Return the names of the DMARC tree walk above a domain, nearest first: at most 8 lookups with its own."""
    labels = domain.split(".")
    # A name with eight or more labels continues at its last seven labels, so that deep names cost no more.
    first = max(1, len(labels) - (TREE_WALK_LIMIT - 1))
    return [".".join(labels[index:]) for index in range(first, len(labels))]


def select_policy(above: Sequence[DmarcPolicy]) -> DmarcPolicy | None:
    """Return the policy that applies to a domain without its own, by the tree walk (RFC 9989, section 4.10).

    above: the policies found on the walk, nearest first, at most one per name. psd=n ends the walk; otherwise the
    highest policy applies, and that of a public suffix (psd=y) only if there is no other.
    """
    ends = [policy for policy in above if _psd(policy) == "n"]
    ordinary = [policy for policy in above if _psd(policy) != "y"]
    return next(iter([*ends[:1], *ordinary[-1:], *above[-1:]]), None)


def _psd(policy: DmarcPolicy) -> str:
    try:
        return parse_tags(policy.text).get("psd", "u").lower()
    except InvalidTags:
        return "u"
