"""The check of the return path CNAME."""

from core.lib.coded_texts import CodedText
from domains.record_checks.record_lookup import RecordLookup
from domains.record_checks.results import RecordCheck, RecordStatus, join_texts

CNAME_LIMIT = 5


async def check_return_path(lookup: RecordLookup, *, fqdn: str, target: str) -> RecordCheck:
    """Check that a name is a CNAME for the target. Raises DnsError."""
    chain = await follow_cnames(lookup, fqdn)
    if target in chain:
        return RecordCheck(RecordStatus.VALID, found=join_texts(chain))
    if chain:
        error = CodedText("domains.cname_target", found=chain[-1], target=target)
        return RecordCheck(RecordStatus.INVALID, found=join_texts(chain), error=error)
    if addresses := await lookup.dns.look_up_addresses(fqdn):
        error = CodedText("domains.address_at_return_path", name=fqdn, address=addresses[0], target=target)
        return RecordCheck(RecordStatus.INVALID, found=join_texts(addresses), error=error)
    return await lookup.missing(
        fqdn,
        kind="CNAME",
        is_expected=lambda text: text == target,
        message=CodedText("domains.no_cname", name=fqdn),
    )


async def follow_cnames(lookup: RecordLookup, name: str) -> list[str]:
    """Return the targets of a chain of CNAMEs, at most CNAME_LIMIT."""
    chain: list[str] = []
    for _ in range(CNAME_LIMIT):
        records = (await lookup.dns.look_up(chain[-1] if chain else name, "CNAME")).records
        if not records or records[0] in chain:
            break
        chain.append(records[0])
    return chain
