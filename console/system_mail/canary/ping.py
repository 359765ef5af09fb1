"""The call of CANARY_PING_URL after a canary came back: a dead man's switch alarms when the calls end."""

import asyncio
import logging

from aiohttp import ClientError, ClientTimeout
from django.conf import settings

from core.lib.network.address_guard import Guard, TargetRefused
from core.lib.network.guarded_http import GuardedSession, NoAddress, verified_tls
from core.lib.network.resolver import DnsError, Resolver
from core.lib.network.target_urls import UrlRules
from core.lib.worker.event_loop import network_loop

log = logging.getLogger("postrider.system_mail")

# The URL is the operator's, whose switch may have a private address.
RULES = UrlRules(guard=Guard(allow_private=True))
TIMEOUT = ClientTimeout(total=10.0)


def ping() -> bool:
    """Call CANARY_PING_URL; return whether the reply is 2xx."""
    return asyncio.run_coroutine_threadsafe(_get(settings.CANARY_PING_URL), network_loop()).result()


async def _get(url: str) -> bool:
    session = GuardedSession(
        RULES, resolver=Resolver(settings.DNS_SERVERS), timeout=TIMEOUT, headers={}, tls=verified_tls()
    )
    try:
        async with session.client.get(await session.check(url), allow_redirects=False) as response:
            is_ok = 200 <= response.status < 300
            error = f"HTTP {response.status}"
    except (TargetRefused, NoAddress, DnsError, ClientError, OSError) as failure:
        is_ok, error = False, type(failure).__name__
    finally:
        await session.close()
    if not is_ok:
        # The URL is a secret.
        log.warning("CANARY_PING_URL could not be called", extra={"data": {"error": error}})
    return is_ok
