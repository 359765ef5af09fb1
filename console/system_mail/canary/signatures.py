"""The signature of a canary that came back: whether SYSTEM_FROM's domain still vouches for it."""

from django.conf import settings

from core.lib.email_addresses import parse_address
from core.lib.network.public_suffixes import organizational_domain
from core.lib.worker.event_loop import network_loop
from receiving.reading.budget import ProcessorBudget
from receiving.reading.dns_lookups import MessageLookups, SharedLookups
from receiving.reading.signatures import SignedMessage

PASS, TEMPERROR, NONE = "pass", "temperror", "none"


def check_signature(source: bytes) -> str:
    """Return `pass` if a DKIM signature is valid and aligned with SYSTEM_FROM, else the result of the first one.

    Looks up keys in the DNS, for at most ten seconds. `none`: no signature is aligned.
    """
    lookups = MessageLookups(SharedLookups(network_loop(), settings.DNS_SERVERS))
    verdicts = SignedMessage(source, lookups, ProcessorBudget()).verify_signatures()
    domain = organizational_domain(parse_address(settings.SYSTEM_FROM).domain)
    results = [one.result for one in verdicts if one.domain and organizational_domain(one.domain) == domain]
    if PASS in results:
        return PASS
    return TEMPERROR if TEMPERROR in results else next(iter(results), NONE)
