"""Sources of a domain's mail: the addresses in DMARC reports, and those that the owner has named."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from ipaddress import IPv4Address, IPv6Address, ip_address

from django.db import transaction

from core.api.errors import NotFound
from core.lib.coded_texts import CodedText
from core.lib.ids import to_uuid
from core.lib.network.public_suffixes import public_suffixes
from core.lib.sql import run
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.errors import PlanLimitReached
from domains.models import Domain, KnownSource
from domains.names import InvalidDomainName, to_a_label
from domains.reports.classification import Whose, reclassify_others

MAX_SOURCES = 500
MAX_KNOWN = 100
MAX_LABEL = 100
# Domains of one source that are shown.
MAX_DOMAINS = 10
# Rows with an invalid address are shown as one source.
NO_ADDRESS = "::"
SOURCES = f"""
WITH rows AS MATERIALIZED (
    SELECT coalesce(source_ip, '{NO_ADDRESS}') AS ip, whose, count, dkim, spf, day,
           dkim_results || spf_results AS results
      FROM domains_dmarcrow WHERE domain_id = %(domain)s AND day >= %(first)s AND day < %(end)s
), sources AS (
    SELECT ip, whose, sum(count)::bigint AS messages,
           coalesce(sum(count) FILTER (WHERE 'pass' IN (dkim, spf)), 0)::bigint AS aligned,
           min(day) AS first_day, max(day) AS last_day
      FROM rows GROUP BY 1, 2 ORDER BY messages DESC, 1, 2 LIMIT {MAX_SOURCES}
), passed AS (
    SELECT ip, whose, array_agg(DISTINCT lower(result ->> 'domain')) AS domains
      FROM rows JOIN sources USING (ip, whose) CROSS JOIN LATERAL jsonb_array_elements(results) AS result
     WHERE result ->> 'result' = 'pass' GROUP BY 1, 2
)
SELECT host(ip), whose, messages, aligned, first_day, last_day, coalesce(domains, '{{}}')
  FROM sources LEFT JOIN passed USING (ip, whose) ORDER BY messages DESC, ip, whose
"""  # noqa: S608 - constants


@dataclass(frozen=True)
class MailSource:
    """An address that sent mail of a domain, with one class of it.

    ip: None for rows with an invalid one.
    whose: a class of Whose.
    domains: that passed SPF or DKIM, at most MAX_DOMAINS.
    label: of the known source that it is; empty for others.
    """

    ip: str | None
    whose: str
    messages: int
    aligned: int
    first_day: date
    last_day: date
    domains: Sequence[str]
    label: str


def read_sources(domain: Domain, *, first: date, end: date) -> list[MailSource]:
    """Return the sources of first ≤ day < end with most messages, at most MAX_SOURCES."""
    known = list(domain.known_sources.all())
    rows = run(SOURCES, {"domain": to_uuid(domain.id, prefix="dom_"), "first": first, "end": end})
    return [
        MailSource(
            None if ip == NO_ADDRESS else ip,
            whose,
            messages,
            aligned,
            first_day,
            last_day,
            domains[:MAX_DOMAINS],
            _label(known, ip, domains) if whose == Whose.KNOWN else "",
        )
        for ip, whose, messages, aligned, first_day, last_day, domains in rows
    ]


def _label(known: Sequence[KnownSource], ip: str, domains: Sequence[str]) -> str:
    """Return the label of an address, else that of a domain."""
    by_address = (one.label for one in known if one.ip == ip)
    by_domain = (
        one.label for one in known if one.name and any(f".{name}".endswith(f".{one.name}") for name in domains)
    )
    return next(by_address, None) or next(by_domain, "")


def parse_source_address(text: str) -> IPv4Address | IPv6Address:
    """Return the address of a sender, without the zone of an interface. Raises ValueError."""
    address = ip_address(text)
    if getattr(address, "scope_id", None):
        raise ValueError(text)
    return getattr(address, "ipv4_mapped", None) or address


def parse_sender_domain(text: str) -> str:
    """Return the A-label of a domain that signs or sends. Raises InvalidDomainName."""
    name = to_a_label(text)
    if public_suffixes().is_public(name):
        raise InvalidDomainName(CodedText("domains.public_suffix", name=name))
    return name


@transaction.atomic
def name_source(domain: Domain, *, ip: str | None = None, name: str = "", label: str) -> None:
    """Name another sender of a domain, by its address or by the domain that signs or sends for it.

    label: empty to forget it. Stored reports follow. Raises NotFound if the domain was deleted in the meantime, and
    PlanLimitReached at MAX_KNOWN.
    """
    locked = Domain.objects.select_for_update(no_key=True).select_related("workspace").filter(id=domain.id).first()
    if locked is None:
        raise NotFound
    named = locked.known_sources.filter(ip=ip, name=name)
    if not label:
        changed = named.delete()[0]
    else:
        if not named.exists() and locked.known_sources.count() >= MAX_KNOWN:
            detail = CodedText("domains.too_many_sources", limit=MAX_KNOWN)
            raise PlanLimitReached(detail, resource="sources", limit=MAX_KNOWN)
        changed = named.exclude(label=label).exists() or not named.exists()
        KnownSource.objects.update_or_create(domain=locked, ip=ip, name=name, defaults={"label": label})
    if changed:
        about = CodedText("domains.source_named", name=locked.name, source=ip or name, label=label or "-")
        record_action(locked.workspace, AuditAction.DOMAIN_CHANGED, about=about)
        reclassify_others(locked)
