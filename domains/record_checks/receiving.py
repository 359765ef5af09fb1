"""The check of a receiving domain: the MX records with the lowest preference must name this service.

And the record that asks for reports about TLS (RFC 8460), which decides nothing.
"""

from collections.abc import Collection
from dataclasses import dataclass

from core.lib.coded_texts import CodedText, escape_controls
from core.lib.network.resolver import DnsError, Resolver, ServerFailure
from domains.record_checks.dns_cache import DnsCache
from domains.record_checks.results import ReceivingCheck, RecordCheck, RecordStatus, join_texts

# RFC 8460, section 3.
TLS_REPORTING = "_smtp._tls"
TLS_VERSION = "v=TLSRPTv1"


@dataclass(frozen=True)
class ExpectedMx:
    """A receiving domain, and the mail hosts of this service."""

    id: str
    name: str
    organizational_domain: str
    hosts: tuple[str, ...]


async def check_receiving(expected: ExpectedMx, resolver: Resolver) -> ReceivingCheck:
    """Check the MX records of a name; a failed lookup is UNKNOWN, never an error."""
    dns = DnsCache(resolver)
    try:
        records = (await dns.look_up(expected.name, "MX")).records
        tls_reporting = await _find_tls_reporting(expected.name, dns)
    except ServerFailure as error:
        return ReceivingCheck(expected.id, _unknown(CodedText("domains.server_failure", error=error)))
    except DnsError as error:
        return ReceivingCheck(expected.id, _unknown(CodedText("domains.lookup_failed", error=error)))
    finally:
        await dns.close()
    return ReceivingCheck(
        expected.id, _check_mx(expected, records), advice=_advise(expected, records), tls_reporting=tls_reporting
    )


async def _find_tls_reporting(name: str, dns: DnsCache) -> str | None:
    """Return the policies for TLS reports; None without an answer."""
    try:
        texts = await dns.look_up_texts(f"{TLS_REPORTING}.{name}")
    except DnsError:
        return None
    return escape_controls(join_texts(text for text in texts if text.startswith(TLS_VERSION)) or "")


def _check_mx(expected: ExpectedMx, records: Collection[tuple[int, str]]) -> RecordCheck:
    found = join_texts(f"{preference} {host or '.'}" for preference, host in sorted(records))
    own, others = _preferences(expected, records)
    first = min(own.values(), default=None)
    if first is None and not others:
        return RecordCheck(RecordStatus.MISSING, error=CodedText("domains.no_mx", name=expected.name))
    rivals = [host for host, preference in sorted(others.items()) if first is None or preference <= first]
    if rivals:
        error = CodedText("domains.other_mx", host=rivals[0] or ".", own=expected.hosts[0])
        return RecordCheck(RecordStatus.INVALID, found=found, error=error)
    return RecordCheck(RecordStatus.VALID, found=found)


def _advise(expected: ExpectedMx, records: Collection[tuple[int, str]]) -> RecordCheck:
    """Return a warning if the mailboxes of an organization would lose their email."""
    _, others = _preferences(expected, records)
    if expected.name != expected.organizational_domain or not any(others):
        return RecordCheck(RecordStatus.VALID)
    advice = CodedText("domains.use_subdomain", name=expected.name, host=next(filter(None, sorted(others))))
    return RecordCheck(RecordStatus.INVALID, error=advice)


def _preferences(expected: ExpectedMx, records: Collection[tuple[int, str]]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the lowest preference of each own host, and of each other one."""
    # The last record of a host with several counts.
    lowest = {host: preference for preference, host in sorted(records, reverse=True)}
    own = {host: preference for host, preference in lowest.items() if host in expected.hosts}
    return own, {host: preference for host, preference in lowest.items() if host not in own}


def _unknown(error: CodedText) -> RecordCheck:
    return RecordCheck(RecordStatus.UNKNOWN, error=error)
