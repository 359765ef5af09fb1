"""Verdicts about the origin of a received message: SPF, DKIM, DMARC and ARC (docs/decisions/0231).

Nothing is refused for them except by a route that requires it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import idna

from core.lib.mail.address_lists import Mailbox
from core.lib.network.public_suffixes import organizational_domain
from receiving.reading.budget import ProcessorBudget
from receiving.reading.dns_lookups import DnsUnavailable, MessageLookups
from receiving.reading.libraries import authheaders, spf, use_lookups
from receiving.reading.signatures import DkimVerdict, SignatureVerdict, SignedMessage

VERIFYING_SECONDS = 2.0
TEMPERROR, NONE, PASS, FAIL = "temperror", "none", "pass", "fail"


@dataclass(frozen=True)
class ReceivedEnvelope:
    """What the sending host said. remote_ip: None for a simulated message."""

    mail_from: str
    helo: str
    remote_ip: str | None

    @property
    def spf_domain(self) -> str:
        """The domain that SPF checks (RFC 7208, section 2.4)."""
        return (self.mail_from.rpartition("@")[2] or self.helo).lower().rstrip(".")


class SpfVerdict(TypedDict):
    result: str
    domain: str


class DmarcVerdict(TypedDict):
    result: str
    policy: str | None
    domain: str


class ArcVerdict(TypedDict):
    result: str


class Authentication(TypedDict):
    """The verdicts about a message as the resource shows them."""

    result: str
    spf: SpfVerdict
    dkim: list[DkimVerdict]
    dmarc: DmarcVerdict
    arc: ArcVerdict


def verify_origin(
    source: bytes, *, envelope: ReceivedEnvelope, senders: Sequence[Mailbox], lookups: MessageLookups
) -> Authentication:
    """Return the verdicts. senders: the addresses in From, as in Reading."""
    with use_lookups(lookups):
        budget = ProcessorBudget(VERIFYING_SECONDS)
        spf_result = check_spf(envelope, lookups)
        signed = SignedMessage(source, lookups, budget)
        signatures = signed.verify_signatures()
        domain = from_domain(senders)
        dmarc, policy = check_dmarc(domain, envelope, spf_result, signatures, lookups)
        arc = signed.verify_chain()
    return {
        "result": conclude(domain, envelope, spf_result, signatures, dmarc),
        "spf": {"result": spf_result, "domain": envelope.spf_domain},
        "dkim": [verdict.to_json() for verdict in signatures],
        "dmarc": {"result": dmarc, "policy": policy, "domain": domain},
        "arc": {"result": arc},
    }


def from_domain(senders: Sequence[Mailbox]) -> str:
    """Return the domain of From as an A-label; empty unless exactly one address is in it."""
    if len(senders) != 1:
        return ""
    domain = senders[0].email.rpartition("@")[2].lower().rstrip(".")
    try:
        return domain if domain.isascii() else idna.encode(domain, uts46=True).decode()
    except idna.IDNAError:
        return ""


def check_spf(envelope: ReceivedEnvelope, lookups: MessageLookups) -> str:
    """Return the result of SPF for MAIL FROM, or HELO if that is empty."""
    if envelope.remote_ip is None or not envelope.spf_domain:
        return NONE
    try:
        query = spf.query(envelope.remote_ip, envelope.mail_from, envelope.helo, timeout=lookups.seconds_left or 0.01)
        return str(query.check()[0])
    except DnsUnavailable:
        return TEMPERROR
    except Exception:  # noqa: BLE001 - the library raises many types for malformed names and records
        return "permerror"


def check_dmarc(
    domain: str,
    envelope: ReceivedEnvelope,
    spf_result: str,
    signatures: Sequence[SignatureVerdict],
    lookups: MessageLookups,
) -> tuple[str, str | None]:
    """Return the result of DMARC and the policy of the domain; None without one.

    The organisational domain is that of the public suffix list, not of the tree walk of RFC 9989.
    """
    if not domain:
        return "permerror", None
    passed: list[SignatureVerdict | None] = [verdict for verdict in signatures if verdict.result == PASS]
    sender = authheaders.SPFAuthenticationResult(result=spf_result, smtp_mailfrom=f"@{envelope.spf_domain}")
    results = []
    try:
        for verdict in passed or [None]:
            signature = authheaders.DKIMAuthenticationResult(result=PASS, header_d=verdict.domain) if verdict else None
            result, _, _, policy = authheaders.dmarc_per_from(
                domain,
                spf_result=sender,
                dkim_result=signature,
                dnsfunc=lambda name: _find_policy(name, domain, lookups),
            )
            results.append((result, policy or None))
    except DnsUnavailable:
        return TEMPERROR, None
    except Exception:  # noqa: BLE001 - the library raises several types for a malformed record
        return "permerror", None
    result, policy = next((found for found in results if found[0] == PASS), results[0])
    is_undecided = result == FAIL and TEMPERROR in {spf_result, *(verdict.result for verdict in signatures)}
    return (TEMPERROR if is_undecided else result), policy


def conclude(
    domain: str,
    envelope: ReceivedEnvelope,
    spf_result: str,
    signatures: Sequence[SignatureVerdict],
    dmarc: str,
) -> str:
    """Return `pass` if DMARC passes, or without a policy if SPF or DKIM is aligned with From."""
    if dmarc != NONE:
        return dmarc
    results = {verdict.result for verdict in signatures} | {spf_result}
    aligned = {verdict.domain for verdict in signatures if verdict.result == PASS}
    if spf_result == PASS:
        aligned.add(envelope.spf_domain)
    if any(_is_aligned(name, domain) for name in aligned if name):
        return PASS
    return TEMPERROR if TEMPERROR in results else NONE if results <= {NONE} else FAIL


def _is_aligned(name: str, domain: str) -> bool:
    return organizational_domain(name) == organizational_domain(domain)


def _find_policy(name: str, domain: str, lookups: MessageLookups) -> str | None:
    """Return the only DMARC record at a name, or for another name whether it has TXT records (authheaders' dnsfunc)."""
    records = lookups.look_up(name, "TXT")
    if not name.startswith("_dmarc."):
        return "exists" if records else None
    policies = [record for record in records if record.replace(" ", "").upper().startswith("V=DMARC1")]
    if len(policies) != 1:
        return None
    tags = [tag.strip() for tag in policies[0].split(";") if tag.strip()]
    if name == f"_dmarc.{domain}":
        # The library would apply the policy for subdomains to the domain itself.
        tags = [tag for tag in tags if tag.partition("=")[0].strip().lower() not in {"sp", "np"}]
    return ";".join(["v=DMARC1", *tags[1:]])
