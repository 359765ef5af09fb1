"""Refresh of MTA-STS policies: each is fetched again daily, also without email (RFC 8461, section 10.2)."""

import asyncio
from collections.abc import Iterator, Mapping

from django.conf import settings

from core.delivery.transports.tls_policies.sts_lookups import (
    CHECK_SECONDS,
    REFRESH_SECONDS,
    StsFinding,
    StsLookup,
    StsState,
)
from core.lib.sql import delete_batches, run
from emails.pacing.paces import is_direct
from emails.tls_policies.configured import direct_guard, direct_resolver, sts_lookup
from emails.tls_policies.store import read_state, save_finding

MAX_AT_ONCE = 20
# Domains of one run, and the time for all of them; the others are due in the next one.
MAX_DOMAINS = 500
TOTAL_SECONDS = 240.0
BATCH_SIZE = 1000
DUE = f"""
SELECT domain FROM emails_sts_policy
 WHERE mode IN ('enforce', 'testing') AND expires_at > now()
   AND checked_at < now() - make_interval(secs => {CHECK_SECONDS})
   AND fetched_at < now() - make_interval(secs => least({REFRESH_SECONDS}, max_age / 2.0))
 ORDER BY fetched_at LIMIT {MAX_DOMAINS}
"""  # noqa: S608 - constants
# Policies that ended a day ago, and domains without one that nothing was sent to for a day. A domain that asks for TLS
# reports stays until that of its last day has been made.
DELETE = f"""
WITH over AS MATERIALIZED (
    SELECT domain FROM emails_sts_policy
     WHERE coalesce(expires_at, checked_at) < now() - interval '1 day'
       AND (report_to = '' OR checked_at < now() - interval '3 days') LIMIT {BATCH_SIZE} FOR UPDATE SKIP LOCKED
)
DELETE FROM emails_sts_policy WHERE domain IN (SELECT domain FROM over)
"""  # noqa: S608 - constants


def refresh_policies() -> None:
    """Fetch the policies that were fetched a day ago; one that cannot be fetched stays until its end."""
    if not settings.DELIVERY_TLS_POLICIES or not is_direct():
        return
    refresh_due(sts_lookup(direct_resolver(), direct_guard()))


def refresh_due(lookup: StsLookup) -> None:
    """Look up the domains that are due, and record the results."""
    domains = [domain for (domain,) in run(DUE)]
    known = {domain: read_state(domain) for domain in domains}
    for domain, finding in asyncio.run(_look_up(lookup, known)).items():
        save_finding(domain, finding)


async def _look_up(lookup: StsLookup, known: Mapping[str, StsState | None]) -> dict[str, StsFinding]:
    """Return the results by domain, without those that took too long."""
    limit, found = asyncio.Semaphore(MAX_AT_ONCE), dict[str, StsFinding]()

    async def look_up(domain: str) -> None:
        async with limit:
            found[domain] = await lookup.look_up(domain, known[domain])

    tasks = [asyncio.ensure_future(look_up(domain)) for domain in known]
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=TOTAL_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return found


def delete_ended_policies() -> Iterator[None]:
    """Delete what is not needed any more, in batches; yield after each."""
    return delete_batches(DELETE, size=BATCH_SIZE)
