"""Requests with TLS reports to https: URIs (RFC 8460, section 5.4). The URLs are those of strangers."""

import asyncio
from collections.abc import Mapping

from aiohttp import ClientError, ClientTimeout
from django.conf import settings

from console.system_mail.tls_reports.message import MEDIA_TYPE
from core.lib.network.address_guard import Guard, TargetRefused
from core.lib.network.guarded_http import GuardedSession, NoAddress, verified_tls
from core.lib.network.resolver import DnsError, Resolver
from core.lib.network.target_urls import UrlRules
from core.lib.worker.event_loop import network_loop

TIMEOUT = ClientTimeout(total=10.0)
MAX_AT_ONCE = 20


def post_files(files: Mapping[str, tuple[str, bytes]]) -> dict[str, str]:
    """Post files to URLs. Return for each key an error, empty if the reply was 2xx; the body of replies is not read.

    files: a URL and a report by key.
    """
    return asyncio.run_coroutine_threadsafe(_post_all(files), network_loop()).result()


async def _post_all(files: Mapping[str, tuple[str, bytes]]) -> dict[str, str]:
    limit = asyncio.Semaphore(MAX_AT_ONCE)
    session = GuardedSession(
        UrlRules(guard=Guard(allow_private=settings.DELIVERY_ALLOW_PRIVATE_NETWORKS)),
        resolver=Resolver(settings.DNS_SERVERS),
        timeout=TIMEOUT,
        headers={"Content-Type": MEDIA_TYPE, "User-Agent": "Postrider"},
        tls=verified_tls(),
    )

    async def post(url: str, data: bytes) -> str:
        async with limit:
            return await _post(session, url, data)

    try:
        errors = await asyncio.gather(*(post(*one) for one in files.values()))
    finally:
        await session.close()
    return dict(zip(files, errors, strict=True))


async def _post(session: GuardedSession, url: str, data: bytes) -> str:
    try:
        target = await session.check(url)
        async with session.client.post(target, data=data, allow_redirects=False) as response:
            return "" if 200 <= response.status < 300 else f"The host answered {response.status}."
    except (TargetRefused, NoAddress, DnsError, ClientError, OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
