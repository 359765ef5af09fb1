"""Domain checks: all records at once, within five seconds, without database access."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass

from core.lib.coded_texts import CodedText
from core.lib.network.resolver import DnsError, Resolver, ServerFailure
from domains.record_checks.dkim import check_dkim
from domains.record_checks.dmarc import check_dmarc
from domains.record_checks.dns_cache import DnsCache
from domains.record_checks.record_lookup import RecordLookup
from domains.record_checks.results import RecordCheck, RecordStatus, VerificationResult
from domains.record_checks.return_path import check_return_path
from domains.record_checks.spf import check_spf
from domains.record_checks.spf_syntax import SpfMechanism


@dataclass(frozen=True)
class ExpectedRecords:
    """The records that a domain should publish. keys: public keys by selector."""

    domain: str
    organizational_domain: str
    keys: Mapping[str, str]
    mechanisms: tuple[SpfMechanism, ...]
    return_path: str
    return_path_target: str


async def check_domain_records(expected: ExpectedRecords, resolver: Resolver) -> VerificationResult:
    """Check every record of a domain; a record whose lookup fails is UNKNOWN, never an error."""
    dns = DnsCache(resolver)
    lookup = RecordLookup(expected.domain, expected.organizational_domain, dns)
    checks = [
        *(
            check_dkim(lookup, fqdn=f"{selector}._domainkey.{expected.domain}", public_key=key)
            for selector, key in expected.keys.items()
        ),
        check_spf(lookup, required=expected.mechanisms),
        check_dmarc(lookup),
        check_return_path(lookup, fqdn=expected.return_path, target=expected.return_path_target),
    ]
    try:
        results, mail = await asyncio.gather(asyncio.gather(*map(_unknown_on_error, checks)), _check_mail_hosts(lookup))
    finally:
        await dns.close()
    *keys, spf, dmarc, return_path = results
    return VerificationResult(
        keys=dict(zip(expected.keys, keys, strict=True)),
        spf=spf,
        dmarc=dmarc,
        return_path=return_path,
        mail=mail,
    )


async def _unknown_on_error(check: Awaitable[RecordCheck]) -> RecordCheck:
    try:
        return await check
    except ServerFailure as error:
        return RecordCheck(RecordStatus.UNKNOWN, error=CodedText("domains.server_failure", error=error))
    except DnsError as error:
        return RecordCheck(RecordStatus.UNKNOWN, error=CodedText("domains.lookup_failed", error=error))


async def _check_mail_hosts(lookup: RecordLookup) -> RecordCheck:
    """Check that replies to a domain can arrive; a failed lookup is no error."""
    try:
        error = await _find_mail_error(lookup.domain, lookup.dns)
    except DnsError:
        error = None
    # The records of a domain that does not exist say so.
    if error is None or await lookup.dns.is_absent(lookup.organizational_domain):
        return RecordCheck(RecordStatus.VALID)
    return RecordCheck(RecordStatus.INVALID, error=error)


async def _find_mail_error(domain: str, dns: DnsCache) -> CodedText | None:
    answer = await dns.look_up(domain, "MX")
    if answer.records == ((0, ""),):
        return CodedText("domains.null_mx", name=domain)
    if answer.canonical_name not in {"", domain}:
        return CodedText("domains.cname_at_domain", name=domain, target=answer.canonical_name)
    if answer.records or (await dns.look_up(domain, "A")).records or (await dns.look_up(domain, "AAAA")).records:
        return None
    return CodedText("domains.no_mail_host", name=domain)
