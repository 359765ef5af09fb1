"""Outbound connections: every kind of destination that the installation connects to.

The only list of them: the page of the staff and the guide show it, and tests compare it with the modules that open
connections and with the packets of a running service (docs/decisions/0377).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy

from console.privacy import destinations


@dataclass(frozen=True)
class ConnectionKind:
    """A kind of destination.

    setting: the settings that name its destinations or switch it off, separated by commas.
    modules: those that open its connections; none if another program of the installation does.
    find: yields its destinations in force.
    """

    name: str
    title: Any
    purpose: Any
    setting: str
    modules: tuple[str, ...]
    find: Callable[[], Iterator[str]]


KINDS = (
    ConnectionKind(
        "database",
        gettext_lazy("PostgreSQL"),
        gettext_lazy("Stores everything."),
        "DATABASE_URL",
        (
            "config.postgres.base",
            "config.postgres.preparation",
            "core.lib.sql",
            "core.lib.worker.failpoints",
            "core.workspaces.retention",
        ),
        destinations.find_database,
    ),
    ConnectionKind(
        "redis",
        gettext_lazy("Redis"),
        gettext_lazy("Wake-ups of workers and rate limits. No content of emails."),
        "REDIS_URL",
        (
            "config.celery",
            "config.doctor.installation",
            "config.health",
            "core.lib.redis_client",
            "core.lib.token_bucket",
            "core.lib.worker.reports",
            "core.lib.worker.wakeup",
            "suppressions.notices",
        ),
        destinations.find_redis,
    ),
    ConnectionKind(
        "dns",
        gettext_lazy("Name servers"),
        gettext_lazy("Names of hosts and domains: of recipients, senders, sending domains and webhooks."),
        "DNS_SERVERS, DNSSEC_RESOLVER",
        (
            "config.doctor.mail",
            "config.doctor.receiving",
            "config.doctor.submission",
            "config.doctor.transports",
            "config.doctor.web",
            "core.lib.network.resolver",
            "domains.check_queue.processor",
            "console.system_mail.canary.ping",
            "console.system_mail.tls_reports.posting",
            "emails.sending.transports",
            "emails.tls_policies.configured",
            "receiving.reading.dns_lookups",
            "receiving.reading.libraries",
            "webhooks.sending.webhooks_work",
        ),
        destinations.find_name_servers,
    ),
    ConnectionKind(
        "block_lists",
        gettext_lazy("Block lists"),
        gettext_lazy("Through the name servers: the own sending addresses, and the hosts that deliver email."),
        "BLOCKLISTS, RECEIVING_DNSBL",
        ("emails.sources.watch", "interfaces.inbound.routed"),
        destinations.find_block_lists,
    ),
    ConnectionKind(
        "mail_hosts",
        gettext_lazy("Mail hosts"),
        gettext_lazy("Emails to their recipients, by a direct transport."),
        "DELIVERY_TRANSPORT, TRANSPORTS_FILE, DIRECT_SMTP_PORT",
        ("config.doctor.mail", "core.delivery.transports.direct", "core.delivery.transports.smtp.session"),
        destinations.find_mail_hosts,
    ),
    ConnectionKind(
        "policy_hosts",
        gettext_lazy("Policy hosts"),
        gettext_lazy("MTA-STS policies of recipient domains, for a direct transport. No content of emails."),
        "DELIVERY_TLS_POLICIES",
        ("core.delivery.transports.tls_policies.sts_lookups",),
        destinations.find_policy_hosts,
    ),
    ConnectionKind(
        "tls_reports",
        gettext_lazy("Addresses for TLS reports"),
        gettext_lazy(
            "Numbers of sessions with a recipient domain, at the URL of its DNS record. No content of emails."
        ),
        "TLSRPT_DOMAIN",
        ("console.system_mail.tls_reports.posting",),
        destinations.find_report_hosts,
    ),
    ConnectionKind(
        "relays",
        gettext_lazy("Relays"),
        gettext_lazy("All emails of an SMTP transport."),
        "SMTP_URL, TRANSPORTS_FILE",
        ("config.doctor.mail", "core.delivery.transports.relay"),
        destinations.find_relays,
    ),
    ConnectionKind(
        "providers",
        gettext_lazy("Email providers"),
        gettext_lazy("All emails of a transport of django-anymail."),
        "ANYMAIL_BACKEND, TRANSPORTS_FILE",
        ("core.delivery.transports.anymail", "core.delivery.transports.provider_messages"),
        destinations.find_providers,
    ),
    ConnectionKind(
        "own_servers",
        gettext_lazy("Own mail servers"),
        gettext_lazy("Emails to domains that are received here, and to the built-in inbox."),
        "RECEIVING_SERVER, INBOX_PORT",
        ("core.delivery.transports.relay",),
        destinations.find_own_servers,
    ),
    ConnectionKind(
        "webhooks",
        gettext_lazy("Webhooks"),
        gettext_lazy("Events, to the URLs that workspaces have entered."),
        "WEBHOOK_PORTS, WEBHOOK_ALLOW_PRIVATE_NETWORKS",
        ("webhooks.sending.post",),
        destinations.find_webhooks,
    ),
    ConnectionKind(
        "files",
        gettext_lazy("Attachments by URL"),
        gettext_lazy("Files that a request of Resend's API names by URL."),
        "WEBHOOK_PORTS, WEBHOOK_ALLOW_PRIVATE_NETWORKS",
        ("interfaces.compat.resend.remote_files",),
        destinations.find_files,
    ),
    ConnectionKind(
        "tracking_hosts",
        gettext_lazy("Tracking hosts"),
        gettext_lazy("The check whether the host of a sending domain's links leads to this service."),
        "PUBLIC_URL",
        ("domains.record_checks.tracking_host",),
        destinations.find_tracking_hosts,
    ),
    ConnectionKind(
        "identity_provider",
        gettext_lazy("Identity provider"),
        gettext_lazy("Sign-ins with OpenID Connect."),
        "OIDC_ISSUER",
        ("console.dashboard.auth.oidc.provider",),
        destinations.find_identity_provider,
    ),
    ConnectionKind(
        "canary",
        gettext_lazy("Monitor of canaries"),
        gettext_lazy("A call after each canary that came back, without content."),
        "CANARY_PING_URL",
        ("console.system_mail.canary.ping",),
        destinations.find_canary,
    ),
    ConnectionKind(
        "spam_filter",
        gettext_lazy("Spam filter"),
        gettext_lazy("Received emails, to rspamd."),
        "RSPAMD_URL",
        ("receiving.reading.spam",),
        destinations.find_spam_filter,
    ),
    ConnectionKind(
        "checked_servers",
        gettext_lazy("Servers that manage.py doctor checks"),
        gettext_lazy("Own public names, only while the command runs; with a direct transport also mail hosts."),
        "PUBLIC_URL, RECEIVING_MX",
        ("config.doctor.mail", "config.doctor.receiving", "config.doctor.submission", "config.doctor.web"),
        destinations.find_checked_servers,
    ),
    ConnectionKind(
        "authority",
        gettext_lazy("Certificate authority"),
        gettext_lazy("Certificates of the public names: by the reverse proxy, not by Postrider."),
        "TRACKING_CA",
        (),
        destinations.find_authority,
    ),
)
