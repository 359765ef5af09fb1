"""Domain checks: all records at once, within five seconds, without database access."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass

from domains.record_checks.dkim import check_dkim
from domains.record_checks.dmarc import check_dmarc
from domains.record_checks.dns_cache import DnsCache
from domains.record_checks.record_lookup import RecordLookup
from domains.record_checks.results import RecordCheck, RecordStatus, VerificationResult
from domains.record_checks.return_path import check_return_path
from domains.record_checks.spf import check_spf
from domains.record_checks.spf_syntax import SpfMechanism
from lib.coded_texts import CodedText
from lib.network.resolver import DnsError, Resolver


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
        results, mail_hosts = await asyncio.gather(
            asyncio.gather(*map(_unknown_on_error, checks)), dns.look_up_optional(expected.domain, "MX")
        )
    finally:
        await dns.close()
    *keys, spf, dmarc, return_path = results
    return VerificationResult(
        keys=dict(zip(expected.keys, keys, strict=True)),
        spf=spf,
        dmarc=dmarc,
        return_path=return_path,
        mail=_check_mail_hosts(expected.domain, mail_hosts),
    )


async def _unknown_on_error(check: Awaitable[RecordCheck]) -> RecordCheck:
    try:
        return await check
    except DnsError as error:
        return RecordCheck(RecordStatus.UNKNOWN, error=CodedText("domains.lookup_failed", error=error))


def _check_mail_hosts(domain: str, hosts: tuple[tuple[int, str], ...]) -> RecordCheck:
    if hosts == ((0, ""),):
        return RecordCheck(RecordStatus.INVALID, error=CodedText("domains.null_mx", name=domain))
    return RecordCheck(RecordStatus.VALID)
