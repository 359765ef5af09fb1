"""Whose mail the rows of DMARC reports are about (docs/decisions/0398).

Rows are classified when their report is read. Naming a source changes those that are not known to be our own.
"""

from ipaddress import ip_network

from django.conf import settings
from django.db.models import TextChoices

from core.lib.ids import to_uuid
from core.lib.sql import run
from domains.models import Domain, DomainReport
from domains.record_checks.spf_syntax import NETWORKS, parse_mechanisms
from domains.signing_identities import return_path_name


class Whose(TextChoices):
    """Whose mail a row is about.

    OURS: a valid signature by a key of the domain, from a server of ours.
    OURS_BROKEN: from a server of ours, without such a signature: damaged or unsigned.
    FORWARDED: a valid signature by a key of the domain, from another server.
    KNOWN: from another sender that the owner has named.
    UNKNOWN: from any other.
    """

    OURS = "ours"
    OURS_BROKEN = "ours_broken"
    FORWARDED = "forwarded"
    KNOWN = "known"
    UNKNOWN = "unknown"


# Mail that was sent here.
OWN = (Whose.OURS, Whose.OURS_BROKEN, Whose.FORWARDED)
OTHERS = (Whose.KNOWN, Whose.UNKNOWN)
FROM_OUR_SERVERS = (Whose.OURS, Whose.OURS_BROKEN)
SIGNED = (Whose.OURS, Whose.FORWARDED)

# d is the domain that a row counts for. Anybody may write a row that passes: a report is only as true as its sender.
IS_SIGNED = """EXISTS (
    SELECT FROM jsonb_array_elements(r.dkim_results) AS signature
     WHERE signature ->> 'result' = 'pass' AND lower(signature ->> 'domain') = d.name
       AND lower(signature ->> 'selector') IN (SELECT selector FROM domains_dkimkey k WHERE k.domain_id = d.id))"""
# SPF passes for the return path if, and only if, the address is one of our servers.
IS_OUR_SERVER = """(r.source_ip <<= ANY(%(networks)s::inet[]) OR EXISTS (
    SELECT FROM jsonb_array_elements(r.spf_results) AS sender
     WHERE sender ->> 'result' = 'pass'
       AND lower(sender ->> 'domain') IN (%(return_path)s, %(return_path_name)s || d.name)))"""
IS_KNOWN = """EXISTS (
    SELECT FROM domains_knownsource s
     WHERE s.domain_id = d.id AND (s.ip = r.source_ip OR s.name <> '' AND EXISTS (
           SELECT FROM jsonb_array_elements(r.dkim_results || r.spf_results) AS passed
            WHERE passed ->> 'result' = 'pass'
              AND right('.' || lower(passed ->> 'domain'), length(s.name) + 1) = '.' || s.name)))"""
# A policy covers the domains below it: a row about another domain of the workspace counts for that one.
CLASSIFY = f"""
UPDATE domains_dmarcrow r SET domain_id = d.id, whose = CASE
       WHEN {IS_SIGNED} THEN CASE WHEN {IS_OUR_SERVER} THEN '{Whose.OURS}' ELSE '{Whose.FORWARDED}' END
       WHEN {IS_OUR_SERVER} THEN '{Whose.OURS_BROKEN}'
       WHEN {IS_KNOWN} THEN '{Whose.KNOWN}' ELSE '{Whose.UNKNOWN}' END
  FROM domains_dmarcrow counted
       JOIN domains_domain reported ON reported.id = counted.domain_id
       LEFT JOIN domains_domain named
              ON named.workspace_id = reported.workspace_id AND named.name = lower(counted.header_from)
                 AND right(named.name, length(reported.name) + 1) = '.' || reported.name
       JOIN domains_domain d ON d.id = coalesce(named.id, reported.id)
 WHERE counted.report_id = %(report)s AND r.id = counted.id
"""  # noqa: S608 - constants
# Keys are deleted two weeks after the next one signs, so that rows of ours keep their class.
RENAME = f"""
UPDATE domains_dmarcrow r
   SET whose = CASE WHEN r.whose = '{Whose.KNOWN}' THEN '{Whose.UNKNOWN}' ELSE '{Whose.KNOWN}' END
  FROM domains_domain d
 WHERE d.id = %(domain)s AND r.domain_id = d.id AND r.whose = ANY(%(others)s)
   AND (r.whose = '{Whose.KNOWN}') <> {IS_KNOWN}
"""  # noqa: S608 - constants


def classify_rows(report: DomainReport) -> None:
    """Store whose mail the rows of a report are about, in the transaction that stores them."""
    values = {
        "report": to_uuid(report.id, prefix="rpt_"),
        "networks": _own_networks(),
        "return_path": settings.RETURN_PATH_DOMAIN.lower().rstrip("."),
        "return_path_name": return_path_name(""),
    }
    run(CLASSIFY, values)


def reclassify_others(domain: Domain) -> None:
    """Follow a change of the known sources of a domain."""
    run(RENAME, {"domain": to_uuid(domain.id, prefix="dom_"), "others": [whose.value for whose in OTHERS]})


def _own_networks() -> list[str]:
    """Return the networks of SPF_MECHANISMS, which has those of all transports; names in it are known by SPF."""
    mechanisms = parse_mechanisms(settings.SPF_MECHANISMS)
    return [str(ip_network(one.argument[1:], strict=False)) for one in mechanisms if one.name in NETWORKS]
