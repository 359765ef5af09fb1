"""The check of a tracking host: its CNAME, the CAA records above it, and the answer of this installation there."""

import re
from collections.abc import Sequence

from aiohttp import ClientError, ClientSSLError, ClientTimeout
from yarl import URL

from core.lib.coded_texts import CodedText
from core.lib.network.address_guard import Guard, TargetRefused
from core.lib.network.guarded_http import GuardedSession, NoAddress, verified_tls
from core.lib.network.resolver import DnsError, Resolver
from core.lib.network.target_urls import UrlRules
from domains.record_checks.dns_cache import DnsCache
from domains.record_checks.expected_host import ExpectedHost
from domains.record_checks.record_lookup import RecordLookup
from domains.record_checks.results import HostCheck, RecordCheck, RecordStatus, join_texts
from domains.record_checks.return_path import follow_cnames

PROOF_SECONDS = 10.0
MAX_PROOF_BYTES = 4096
HEADERS = {"User-Agent": "Postrider"}
# RFC 8659, section 4.1.2: flags, tag, value.
CAA = re.compile(r'\d+ issue "?([^";]*)', re.IGNORECASE)
UNPROVEN = RecordCheck(RecordStatus.MISSING)


async def check_tracking_host(expected: ExpectedHost, resolver: Resolver) -> HostCheck:
    """Check a tracking host: for 14 s at most, of which the proof may take 10."""
    dns = DnsCache(resolver)
    try:
        name = await _check_name(expected, dns)
        authority_name, authority = await _check_authority(expected, dns)
    except DnsError as error:
        name = RecordCheck(RecordStatus.UNKNOWN, error=CodedText("domains.lookup_failed", error=error))
        authority_name, authority = "", None
    finally:
        await dns.close()
    proof = await _check_proof(expected, resolver) if name.status is RecordStatus.VALID else UNPROVEN
    return HostCheck(expected.id, name, proof, authority=authority, authority_name=authority_name)


async def _check_name(expected: ExpectedHost, dns: DnsCache) -> RecordCheck:
    """Check that a host is a CNAME for the target, or has its addresses, as providers publish a flattened CNAME."""
    host, target = expected.name, expected.target
    lookup = RecordLookup(expected.domain, expected.organizational_domain, dns)
    chain = await follow_cnames(lookup, host)
    if target in chain:
        return RecordCheck(RecordStatus.VALID, found=join_texts(chain))
    if chain:
        error = CodedText("domains.cname_target", found=chain[-1], target=target)
        return RecordCheck(RecordStatus.INVALID, found=join_texts(chain), error=error)
    addresses = await _look_up_addresses(dns, host)
    if not addresses:
        missing = CodedText("domains.no_cname", name=host)
        return await lookup.missing(host, kind="CNAME", is_expected=lambda text: text == target, message=missing)
    if set(addresses) <= set(await _look_up_addresses(dns, target)):
        return RecordCheck(RecordStatus.VALID, found=join_texts(addresses))
    error = CodedText("domains.address_at_return_path", name=host, address=addresses[0], target=target)
    return RecordCheck(RecordStatus.INVALID, found=join_texts(addresses), error=error)


async def _look_up_addresses(dns: DnsCache, name: str) -> Sequence[str]:
    """Return the addresses of a name. Raises DnsError: without all of them, nothing is refuted."""
    return sorted([*(await dns.look_up(name, "A")).records, *(await dns.look_up(name, "AAAA")).records])


async def _check_authority(expected: ExpectedHost, dns: DnsCache) -> tuple[str, RecordCheck | None]:
    """Return the CAA records that refuse the certificate, with their name: those of the nearest name that has some."""
    labels = expected.name.split(".")
    names = [".".join(labels[index:]) for index in range(len(labels) - 1)]
    for name in names:
        records = sorted(await dns.look_up_optional(name, "CAA"))
        if records:
            return name, _refusal(expected, name, records)
    return "", None


def _refusal(expected: ExpectedHost, name: str, records: Sequence[str]) -> RecordCheck | None:
    issuers = [match[1].strip().lower() for record in records if (match := CAA.match(record))]
    # Without issue tags, any authority may issue. The records of the CNAME's target are those of the operator.
    if not issuers or expected.authority in issuers or name == expected.name:
        return None
    error = CodedText("domains.caa", name=name, authority=expected.authority, host=expected.name)
    return RecordCheck(RecordStatus.INVALID, found=join_texts(records), error=error)


async def _check_proof(expected: ExpectedHost, resolver: Resolver) -> RecordCheck:
    """Check that this installation answers over https. A failed connection refutes nothing."""
    rules = UrlRules(guard=Guard(allow_private=expected.allow_private), ports=(URL(expected.url).port or 443,))
    timeout = ClientTimeout(total=PROOF_SECONDS)
    session = GuardedSession(rules, resolver=resolver, timeout=timeout, headers=HEADERS, tls=verified_tls())
    try:
        return await _read_proof(expected, session)
    except ClientSSLError as error:
        # Until the first visit, the proxy has none.
        return _failure(RecordStatus.MISSING, "domains.host_certificate", expected, error)
    except TargetRefused as error:
        return _failure(RecordStatus.INVALID, "domains.host_unreachable", expected, error)
    except TimeoutError:
        return _failure(RecordStatus.UNKNOWN, "domains.host_unreachable", expected, CodedText("domains.host_timeout"))
    except (NoAddress, DnsError, ClientError, OSError) as error:
        return _failure(RecordStatus.UNKNOWN, "domains.host_unreachable", expected, error)
    finally:
        await session.close()


async def _read_proof(expected: ExpectedHost, session: GuardedSession) -> RecordCheck:
    url = await session.check(expected.url)
    async with session.client.get(url, allow_redirects=False) as response:
        body = await response.content.read(MAX_PROOF_BYTES)
        if response.status >= 500:
            error = CodedText("domains.host_status", status=response.status)
            return _failure(RecordStatus.UNKNOWN, "domains.host_unreachable", expected, error)
        if response.status == 200 and expected.proofs & set(body.decode("ascii", "replace").split()):
            return RecordCheck(RecordStatus.VALID)
    error = CodedText("domains.host_other", name=expected.name, target=expected.target)
    return RecordCheck(RecordStatus.INVALID, error=error)


def _failure(status: RecordStatus, code: str, expected: ExpectedHost, error: object) -> RecordCheck:
    return RecordCheck(status, error=CodedText(code, name=expected.name, error=error))
