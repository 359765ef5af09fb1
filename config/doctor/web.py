"""Checks of the way from the Internet to the web processes: PUBLIC_URL, its certificate, and the proxy."""

import asyncio
import json
import ssl
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from aiohttp import ClientConnectorCertificateError, ClientError, ClientTimeout
from django.conf import settings

from config.doctor.diagnosis import Diagnosis, DoctorOptions, failed, ok, warning
from config.web.probe import HEADER, sign_probe
from core.lib.network.address_guard import Guard, TargetRefused
from core.lib.network.guarded_http import CheckedResolver, GuardedSession, NoAddress
from core.lib.network.resolver import DnsError, Resolver
from core.lib.network.target_urls import UrlRules
from domains.models import TrackingHost
from domains.records import find_tracking_error
from domains.tracking_hosts import count_tracking_hosts

TIMEOUT = ClientTimeout(total=15)
MAX_RESPONSE_BYTES = 65_536
# PUBLIC_URL may lead to a private address from here: behind NAT, or in a trial.
RULES = UrlRules(guard=Guard(allow_private=True))

DNS_REMEDY = "Publish A or AAAA records for {host} that lead to the reverse proxy, or correct PUBLIC_URL."
# The first matching row describes the failure of a request; {error} is its text.
FAILURES: tuple[tuple[type[BaseException], str, str], ...] = (
    (NoAddress, "{host} has no address in the DNS.", DNS_REMEDY),
    (DnsError, "The DNS lookup of {host} failed: {error}", DNS_REMEDY),
    (TargetRefused, "{url} cannot be called: {error}.", "Set PUBLIC_URL to the public name of this service."),
    (
        ClientConnectorCertificateError,
        "The certificate of {host} is not valid: {error}",
        "Renew the certificate for {host}, and make the proxy send the complete chain. Caddy needs ports 80 and 443.",
    ),
    (
        TimeoutError,
        "{url} did not answer within 15 seconds.",
        "Start the reverse proxy and web, and open port {port} in the firewall.",
    ),
    (
        ClientError,
        "{url} cannot be reached: {error}",
        "Start the reverse proxy and web, and open port {port} in the firewall.",
    ),
)


def check_public_url(_: DoctorOptions) -> Diagnosis:
    url = settings.PUBLIC_URL
    try:
        status, body = asyncio.run(_call())
    except tuple(kind for kind, *_ in FAILURES) as error:
        return _failure(error)
    if status != HTTPStatus.OK:
        return failed(
            f"{url}/healthz answers {status}.", remedy="Start web, and make the proxy forward all paths to it."
        )
    if "peer" not in body:
        return failed(
            f"Another service answers at {url}, or one with another SECRET_KEY.",
            remedy="Make the proxy forward to web of this installation, and give all processes the same SECRET_KEY.",
        )
    if not body["isHostAllowed"]:
        host = urlsplit(url).hostname
        return failed(f"Web rejects the host {host}.", remedy=f"Add {host} to ALLOWED_HOSTS and restart web.")
    return ok(f"{url} reaches web{', with a valid certificate' if settings.SECURE else ''}.")


def check_proxy(_: DoctorOptions) -> Diagnosis:
    _status, arrival = asyncio.run(_call())
    peer = arrival["peer"]
    if not settings.SECURE:
        return ok("PUBLIC_URL is http; no proxy is needed.")
    if not arrival["isPeerTrusted"]:
        return failed(
            f"Requests arrive from {peer}, which is not a trusted proxy: clients seem to have its address.",
            remedy=f"Add {peer} or its network to TRUSTED_PROXIES and restart web.",
        )
    if not arrival["isSecure"]:
        return failed(
            "The proxy does not mark requests as https, so sign-in fails.",
            remedy="Make the proxy set the header X-Forwarded-Proto to https.",
        )
    if not arrival["hasForwardedFor"]:
        return failed(
            "The proxy does not send the addresses of clients, which share one rate limit.",
            remedy="Make the proxy set the header X-Forwarded-For to the address of the client.",
        )
    return ok(f"The proxy at {peer} is trusted.")


def check_tracking_hosts(_: DoctorOptions) -> Diagnosis:
    counts = count_tracking_hosts()
    if not sum(counts.values()):
        return ok("No sending domain has a tracking host.")
    try:
        asyncio.run(
            CheckedResolver(Resolver(settings.DNS_SERVERS), guard=RULES.guard).addresses(settings.TRACKING_HOST)
        )
    except (NoAddress, DnsError, TargetRefused) as error:
        return failed(
            f"The target of the CNAMEs of tracking hosts, {settings.TRACKING_HOST}, has no usable address: {error}",
            remedy="Publish A or AAAA records for it that lead to the reverse proxy, or correct TRACKING_HOST.",
        )
    failing = TrackingHost.objects.filter(retired_at=None, status=TrackingHost.HostStatus.FAILED)
    broken = failing.order_by("-created_at").first()
    if broken:
        return warning(
            f"{counts['failed']} of {sum(counts.values())} tracking hosts fail. The newest is {broken.name}: "
            f"{find_tracking_error(broken)}",
            remedy="If all fail, see docs/domains.md about the proxy. Otherwise their workspaces have to correct them.",
        )
    return ok(f"{counts['active']} of {sum(counts.values())} tracking hosts are active, and none fails.")


async def _call() -> tuple[int, dict[str, Any]]:
    """Call /healthz; return the status and the JSON object of the response, empty for any other content."""
    session = GuardedSession(
        RULES,
        resolver=Resolver(settings.DNS_SERVERS),
        timeout=TIMEOUT,
        headers={"User-Agent": "Postrider doctor"},
        tls=ssl.create_default_context(),
    )
    try:
        url = await session.check(f"{settings.PUBLIC_URL}/healthz")
        async with session.client.get(url, headers={HEADER: sign_probe()}, allow_redirects=False) as response:
            return response.status, _parse(await response.content.read(MAX_RESPONSE_BYTES))
    finally:
        await session.close()


def _parse(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _failure(error: BaseException) -> Diagnosis:
    url = urlsplit(settings.PUBLIC_URL)
    values = {"url": settings.PUBLIC_URL, "host": url.hostname, "port": url.port or (443 if settings.SECURE else 80)}
    message, remedy = next((message, remedy) for kind, message, remedy in FAILURES if isinstance(error, kind))
    return failed(message.format(error=error, **values), remedy=remedy.format(**values))
