"""Destinations of the settings in force: a host with its port, or a description of those that others choose.

Each function yields those of one kind, without secrets; none if the kind is not used. Also used by tests, which compare
the hosts with ports with what a running service contacts.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from core.delivery.transports.smtp.smtp_url import InvalidSmtpUrl, parse_smtp_url
from core.delivery.transports.transports_file import TransportSpec
from core.lib.network.resolver import Resolver
from core.lib.redis_client import SENTINEL, SentinelUrl
from domains.receiving.services import mail_hosts
from emails.sources.own_addresses import watched_addresses

PORTS = {"http": 80, "https": 443, "redis": 6379, "rediss": 6379}
POSTGRESQL_PORT = "5432"


def find_database() -> Iterator[str]:
    """Yield the servers of DATABASE_URL; the path of a socket for one on this machine."""
    database = settings.DATABASES["default"]
    hosts, ports = str(database["HOST"] or "localhost").split(","), str(database["PORT"] or "").split(",")
    for index, host in enumerate(hosts):
        port = ports[index] if index < len(ports) and ports[index] else POSTGRESQL_PORT
        yield host if host.startswith("/") else _place(host, port)


def find_redis() -> Iterator[str]:
    if settings.REDIS_URL.startswith(SENTINEL):
        sentinels = SentinelUrl.parse(settings.REDIS_URL)
        yield from (_place(*sentinel) for sentinel in sentinels.sentinels)
        yield _("the primary that they name")
    else:
        yield _place_of_url(settings.REDIS_URL)


def find_name_servers() -> Iterator[str]:
    servers = [*Resolver(settings.DNS_SERVERS).servers, *settings.DNSSEC_RESOLVER]
    yield from (_place(*server) for server in dict.fromkeys(servers))


def find_block_lists() -> Iterator[str]:
    if watched_addresses():
        yield from settings.BLOCKLISTS
    yield from settings.RECEIVING_DNSBL


def find_mail_hosts() -> Iterator[str]:
    if _transports("direct"):
        yield _("the mail hosts of all recipients, port %(port)s") % {"port": settings.DIRECT_SMTP_PORT}


def find_policy_hosts() -> Iterator[str]:
    if _transports("direct") and settings.DELIVERY_TLS_POLICIES:
        yield _("mta-sts. before the domains of recipients, port %(port)s") % {"port": PORTS["https"]}


def find_report_hosts() -> Iterator[str]:
    if settings.TLSRPT_DOMAIN:
        yield _("the https URLs for TLS reports in the DNS records of recipient domains")


def find_relays() -> Iterator[str]:
    for spec in _transports("smtp"):
        relay = spec.relay
        if relay is None:
            try:
                relay = parse_smtp_url(settings.SMTP_URL)
            except InvalidSmtpUrl:
                continue
        yield _place(relay.host, relay.port)


def find_providers() -> Iterator[str]:
    for spec in _transports("anymail"):
        backend = spec.backend or settings.ANYMAIL_BACKEND
        name = backend.removeprefix("anymail.backends.").removesuffix(".EmailBackend")
        yield _("the API of the provider: %(name)s") % {"name": name}


def find_own_servers() -> Iterator[str]:
    if _transports("inbox"):
        yield _place("127.0.0.1", settings.INBOX_PORT)
    if _transports("direct"):
        yield _place(*settings.RECEIVING_SERVER)


def find_webhooks() -> Iterator[str]:
    yield _("the URLs of webhooks, %(ports)s") % {"ports": _webhook_ports()}


def find_files() -> Iterator[str]:
    yield _("the URLs of attachments, %(ports)s") % {"ports": _webhook_ports()}


def find_tracking_hosts() -> Iterator[str]:
    url = urlsplit(settings.PUBLIC_URL)
    yield _("the tracking hosts of sending domains, port %(port)s") % {"port": url.port or PORTS["https"]}


def find_identity_provider() -> Iterator[str]:
    if settings.OIDC_ISSUER:
        yield _place_of_url(settings.OIDC_ISSUER)
        yield _("the hosts of its endpoints")


def find_canary() -> Iterator[str]:
    if settings.CANARY_MINUTES and settings.CANARY_PING_URL:
        yield _place_of_url(settings.CANARY_PING_URL)


def find_spam_filter() -> Iterator[str]:
    if settings.RSPAMD_URL:
        yield _place_of_url(settings.RSPAMD_URL)


def find_checked_servers() -> Iterator[str]:
    yield _place_of_url(settings.PUBLIC_URL)
    if settings.SUBMISSION_TLS_CERT:
        yield _("the ports of SUBMISSION_PORTS and SUBMISSION_TLS_PORTS")
    yield from (_place(host, settings.DIRECT_SMTP_PORT) for host in mail_hosts())


def find_authority() -> Iterator[str]:
    if settings.SECURE:
        yield settings.TRACKING_CA


def _transports(kind: str) -> list[TransportSpec]:
    return [spec for spec in settings.TRANSPORTS.transports.values() if spec.kind == kind]


def _webhook_ports() -> str:
    if settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS:
        return _("any port")
    return _("port %(port)s") % {"port": ", ".join(map(str, settings.WEBHOOK_PORTS))}


def _place_of_url(url: str) -> str:
    """Return the host and port of a URL, without a login."""
    parts = urlsplit(url)
    return _place(parts.hostname or "localhost", parts.port or PORTS.get(parts.scheme, 0))


def _place(host: str, port: int | str) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
