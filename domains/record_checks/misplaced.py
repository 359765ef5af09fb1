"""Where a record is that is not where it should be: the mistakes that DNS forms invite."""

import asyncio
from collections.abc import Callable

from domains.record_checks.dns_cache import Lookups

IsOurs = Callable[[str], bool]
DOUBLED = "It is at {place}: the DNS form adds the domain by itself. Enter only what stands before it."
APEX = "It is at {place} itself; publish it at {fqdn}."
ABOVE = "It is at {place}, without the sub-domain; publish it at {fqdn}."
ELSEWHERE = "It is at {place}; publish it at {fqdn}."
MAX_NAME = 253


async def find_misplaced(
    fqdn: str, *, domain: str, organisational: str, kind: str, is_ours: IsOurs, lookups: Lookups
) -> str | None:
    """Return a sentence on where the record stands instead, None where it is nowhere near.

    is_ours tells the record by what a look-up of its kind found.
    """
    places = _places(fqdn, domain=domain, organisational=organisational)
    found = await asyncio.gather(*(lookups.hint(place, kind) for place in places))
    sentences = (places[place] for place, records in zip(places, found, strict=True) if any(map(is_ours, records)))
    return next(sentences, None)


def _places(fqdn: str, *, domain: str, organisational: str) -> dict[str, str]:
    """Return the places to look at with what to say of each, the likeliest first."""
    host = fqdn.removesuffix(domain)
    selector, is_key, _ = host.partition("._domainkey.")
    candidates = {
        f"{fqdn}.{domain}": DOUBLED,
        f"{fqdn}.{organisational}": DOUBLED,
        f"{host}{organisational}": ABOVE,
        domain: APEX,
        **({f"{selector}.{domain}": ELSEWHERE} if is_key else {}),
    }
    return {
        place: sentence.format(place=place, fqdn=fqdn)
        for place, sentence in candidates.items()
        if place != fqdn and len(place) <= MAX_NAME
    }
