"""Look at the records of a domain, one function for each, and say in plain words what to change.

Each raises DnsTrouble where the DNS gives no answer that counts.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from domains.record_checks import dmarc, spf
from domains.record_checks.dkim import holds_key, judge_key
from domains.record_checks.dns_cache import Lookups
from domains.record_checks.misplaced import IsOurs, find_misplaced
from domains.record_checks.results import RecordCheck, RecordStatus, shown
from domains.record_checks.spf_evaluation import LOOKUP_LIMIT, Walk

CNAME_LIMIT = 5
ALIAS = " {} is a CNAME of {}, and beside a CNAME no other record can stand: publish it there."


@dataclass(frozen=True)
class Look:
    """A domain to look at, the name above which its owner owns nothing, and the way to the DNS."""

    domain: str
    organisational: str
    lookups: Lookups

    async def absent(self, fqdn: str, *, kind: str, is_ours: IsOurs, sentence: str) -> RecordCheck:
        """Return that a record is not there, with where it is instead or why it cannot be."""
        hint = await find_misplaced(
            fqdn,
            domain=self.domain,
            organisational=self.organisational,
            kind=kind,
            is_ours=is_ours,
            lookups=self.lookups,
        )
        return RecordCheck(RecordStatus.ABSENT, error=f"{sentence} {hint or ''}".strip())

    async def alias(self, fqdn: str) -> str:
        """Return a sentence on the CNAME that keeps a TXT record from standing at a name, "" without one."""
        targets = await self.lookups.hint(fqdn, "CNAME")
        return ALIAS.format(fqdn, targets[0]) if targets else ""


async def look_at_key(look: Look, *, fqdn: str, public_key: str) -> RecordCheck:
    texts = await look.lookups.texts(fqdn)
    if texts:
        return judge_key(texts, fqdn=fqdn, public_key=public_key)
    return await look.absent(
        fqdn,
        kind="TXT",
        is_ours=lambda text: holds_key(text, public_key),
        sentence=f"There is no TXT record at {fqdn}.{await look.alias(fqdn)}",
    )


async def look_at_spf(look: Look, *, mechanisms: Sequence[spf.Mechanism]) -> RecordCheck:
    texts = await look.lookups.texts(look.domain)
    records = [text for text in texts if spf.is_spf(text)]
    if len(records) == 1:
        return await _judge_spf(look, records[0], mechanisms)
    if records:
        error = f"There are {len(records)} SPF records; receivers count none of them. Put the one shown in their place."
        one = spf.merged(records, mechanisms)
        return RecordCheck(
            RecordStatus.WRONG, found=shown(records), error=error, value=one if spf.is_short(one) else None
        )
    garbled = [text for text in texts if spf.looks_like_spf(text)]
    if garbled:
        error = "The record must begin with v=spf1 and a blank, without quotation marks or backslashes of its own."
        return RecordCheck(RecordStatus.WRONG, found=shown(garbled), error=error)
    return await look.absent(
        look.domain,
        kind="TXT",
        is_ours=lambda text: spf.is_spf(text) and all(str(one) in text.lower() for one in mechanisms),
        sentence=f"There is no SPF record at {look.domain}.{await look.alias(look.domain)}",
    )


async def _judge_spf(look: Look, text: str, mechanisms: Sequence[spf.Mechanism]) -> RecordCheck:
    wrong = RecordCheck(RecordStatus.WRONG, found=shown([text]))
    try:
        record = spf.parse_spf(text)
    except spf.SpfInvalid as invalid:
        return replace(wrong, error=str(invalid))
    walk = await _walked(look, record)
    if walk.problem:
        return replace(wrong, error=walk.problem)
    missing = spf.not_covered(mechanisms, walk.passing)
    if record.passes_all:
        error = "+all lets the whole world send as this domain; end with ~all or -all."
        return replace(wrong, error=error, value=spf.merged([text], missing))
    if any(one.name == "all" for one in walk.passing):
        return replace(wrong, error="It includes a record with +all, which lets the whole world send; take that out.")
    if missing:
        return await _with_ours(look, wrong, text, missing)
    note = f"It takes {walk.lookups} of the {LOOKUP_LIMIT} DNS look-ups that receivers allow."
    return RecordCheck(RecordStatus.RIGHT, found=shown([text]), value=text, note=note)


async def _with_ours(look: Look, wrong: RecordCheck, text: str, missing: Sequence[spf.Mechanism]) -> RecordCheck:
    """Return what to publish in place of a record that lacks mechanisms, weighed as receivers will."""
    names = " and ".join(map(str, missing))
    value = spf.merged([text], missing)
    if not spf.is_short(value):
        return replace(wrong, error=f"{names} is missing, and the record has no room left; take something out.")
    walk = await _walked(look, spf.parse_spf(value))
    weight = walk.problem or f"With it the record takes {walk.lookups} of {LOOKUP_LIMIT} DNS look-ups."
    error = f"{names} is missing, or stands where it never counts; put the record shown in its place. {weight}"
    return replace(wrong, error=error, value=value)


async def _walked(look: Look, record: spf.Spf) -> Walk:
    walk = Walk(look.lookups.look_up)
    await walk.run(record, name=look.domain)
    return walk


async def look_at_dmarc(look: Look) -> RecordCheck:
    fqdn = f"_dmarc.{look.domain}"
    texts = [text for text in await look.lookups.texts(fqdn) if dmarc.looks_like_dmarc(text)]
    if texts:
        error = dmarc.dmarc_fault(texts)
        value = None if error else texts[0]
        return RecordCheck(
            RecordStatus.WRONG if error else RecordStatus.RIGHT, found=shown(texts), error=error, value=value
        )
    policy = await _policy_above(look)
    if policy:
        return _covered(look, policy)
    return await look.absent(
        fqdn,
        kind="TXT",
        is_ours=dmarc.is_dmarc,
        sentence=f"There is no DMARC record at {fqdn}.{await look.alias(fqdn)}",
    )


async def _policy_above(look: Look) -> dmarc.Policy | None:
    names = dmarc.names_above(look.domain)
    found = await asyncio.gather(*(look.lookups.texts(f"_dmarc.{name}") for name in names))
    # More than one policy at a name counts as none (RFC 9989, section 4.10).
    policies = [[text for text in texts if dmarc.is_dmarc(text)] for texts in found]
    above = [dmarc.Policy(name, texts[0]) for name, texts in zip(names, policies, strict=True) if len(texts) == 1]
    return dmarc.covering_policy(above)


def _covered(look: Look, policy: dmarc.Policy) -> RecordCheck:
    error = dmarc.dmarc_fault([policy.text])
    note = f"The policy of {policy.name} counts for this domain; a record of its own is not needed."
    if policy.name != look.organisational:
        note = f"The policy of {policy.name} counts; receivers with old software see none until there is one here."
    verdict = RecordStatus.WRONG if error else RecordStatus.RIGHT
    return RecordCheck(verdict, found=shown([policy.text]), error=error and f"At {policy.name}: {error}", note=note)


async def look_at_return_path(look: Look, *, fqdn: str, target: str) -> RecordCheck:
    chain = await _chain(look, fqdn)
    if target in chain:
        return RecordCheck(RecordStatus.RIGHT, found=shown(chain))
    if chain:
        error = f"It points to {chain[-1]}; let it point to {target}."
        return RecordCheck(RecordStatus.WRONG, found=shown(chain), error=error)
    return await look.absent(
        fqdn,
        kind="CNAME",
        is_ours=lambda found: found == target,
        sentence=f"There is no CNAME at {fqdn}.",
    )


async def _chain(look: Look, name: str) -> list[str]:
    """Follow CNAMEs, a few steps at most."""
    chain: list[str] = []
    for _ in range(CNAME_LIMIT):
        records = (await look.lookups.look_up(chain[-1] if chain else name, "CNAME")).records
        if not records or records[0] in chain:
            break
        chain.append(records[0])
    return chain
