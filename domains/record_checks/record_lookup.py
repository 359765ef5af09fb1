"""DNS lookups for the record checks of one domain, with hints about common publishing mistakes."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from core.lib.coded_texts import CodedText, join_sentences
from domains.record_checks.dns_cache import DnsCache
from domains.record_checks.results import RecordCheck, RecordStatus

MAX_NAME = 253
DOUBLED, ABOVE, ELSEWHERE = "domains.domain_appended", "domains.found_above", "domains.found_elsewhere"


@dataclass(frozen=True)
class RecordLookup:
    """A domain to check, its organizational domain, and the DNS answers."""

    domain: str
    organizational_domain: str
    dns: DnsCache

    async def missing(self, fqdn: str, *, kind: str, is_expected: Callable[[str], bool], message: str) -> RecordCheck:
        """Return the check of a missing record, with a hint if the record was published at another name.

        is_expected: recognizes the record among those of its type (`kind`).
        """
        if await self.dns.is_absent(self.organizational_domain):
            absent = CodedText("domains.absent", name=self.organizational_domain)
            return RecordCheck(RecordStatus.MISSING, error=absent)
        places = self._wrong_places(fqdn)
        answers = await asyncio.gather(*(self.dns.look_up_optional(place, kind) for place in places))
        hints = (
            places[place] for place, records in zip(places, answers, strict=True) if any(map(is_expected, records))
        )
        error = join_sentences(message, await self._cname_conflict(fqdn), next(hints, ""))
        return RecordCheck(RecordStatus.MISSING, error=error)

    async def _cname_conflict(self, fqdn: str) -> str:
        """Return a hint about a CNAME that prevents other records at a name; "" without one."""
        targets = await self.dns.look_up_optional(fqdn, "CNAME")
        if not targets:
            return ""
        if fqdn == self.domain:
            return CodedText("domains.cname_at_domain", name=fqdn, target=targets[0])
        return CodedText("domains.cname_conflict", name=fqdn, target=targets[0], place=targets[0])

    def _wrong_places(self, fqdn: str) -> dict[str, CodedText]:
        """Return the hint for each name at which the record may be by mistake, the most likely first."""
        host = fqdn.removesuffix(self.domain)
        selector, is_key, _ = host.partition("._domainkey.")
        candidates = {
            f"{fqdn}.{self.domain}": DOUBLED,
            f"{fqdn}.{self.organizational_domain}": DOUBLED,
            f"{host}{self.organizational_domain}": ABOVE,
            self.domain: ELSEWHERE,
            **({f"{selector}.{self.domain}": ELSEWHERE} if is_key else {}),
        }
        return {
            place: CodedText(hint, place=place, name=fqdn)
            for place, hint in candidates.items()
            if place != fqdn and len(place) <= MAX_NAME
        }
