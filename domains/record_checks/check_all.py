"""Check a domain against the DNS: all records at once, within five seconds, nothing from the database."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass

from domains.record_checks.checks import Look, look_at_dmarc, look_at_key, look_at_return_path, look_at_spf
from domains.record_checks.dns_cache import Lookups
from domains.record_checks.results import RecordCheck, RecordStatus, VerificationResult
from domains.record_checks.spf import Mechanism
from lib.resolver import DnsTrouble, Resolver

NULL_MX = (
    "{} says by a null MX that it takes no mail (RFC 7505): replies are lost, and some receivers refuse mail from it."
)
NO_ANSWER = "The DNS gave no answer that counts ({}). Nothing is decided by that; it is asked again."


@dataclass(frozen=True)
class Expected:
    """What a domain's DNS should say. keys: public keys by selector."""

    domain: str
    organisational: str
    keys: Mapping[str, str]
    mechanisms: tuple[Mechanism, ...]
    return_path: str
    return_path_target: str


async def check(expected: Expected, resolver: Resolver) -> VerificationResult:
    """Look at every record of a domain; what the DNS does not answer is unknown, never an error."""
    lookups = Lookups(resolver)
    look = Look(expected.domain, expected.organisational, lookups)
    names = [f"{selector}._domainkey.{expected.domain}" for selector in expected.keys]
    looks = [
        *(
            look_at_key(look, fqdn=fqdn, public_key=key)
            for fqdn, key in zip(names, expected.keys.values(), strict=True)
        ),
        look_at_spf(look, mechanisms=expected.mechanisms),
        look_at_dmarc(look),
        look_at_return_path(look, fqdn=expected.return_path, target=expected.return_path_target),
    ]
    try:
        findings, mail_hosts = await asyncio.gather(
            asyncio.gather(*(_unknown_without_answer(one) for one in looks)), lookups.hint(expected.domain, "MX")
        )
    finally:
        await lookups.close()
    *keys, spf, dmarc, return_path = findings
    return VerificationResult(
        keys=dict(zip(expected.keys, keys, strict=True)),
        spf=spf,
        dmarc=dmarc,
        return_path=return_path,
        mail=_mail(expected.domain, mail_hosts),
    )


async def _unknown_without_answer(look: Awaitable[RecordCheck]) -> RecordCheck:
    try:
        return await look
    except DnsTrouble as trouble:
        return RecordCheck(RecordStatus.UNKNOWN, error=NO_ANSWER.format(trouble))


def _mail(domain: str, hosts: tuple[tuple[int, str], ...]) -> RecordCheck:
    if hosts == ((0, ""),):
        return RecordCheck(RecordStatus.WRONG, error=NULL_MX.format(domain))
    return RecordCheck(RecordStatus.RIGHT)
