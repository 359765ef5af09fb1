"""Outbound connections: the declaration names every module that opens some (docs/decisions/0377)."""

import ast
import subprocess
from pathlib import Path

from django.utils.translation import override

from console.privacy.connections import KINDS
from core.delivery.transports.smtp.smtp_url import parse_smtp_url
from core.delivery.transports.transports_file import TransportRoute, Transports, TransportSpec, single_transport
from tests.rows import each
from tests.stack.stack import REPOSITORY

GUIDE = REPOSITORY / "docs/guides/connections.md"
# Libraries that open connections, and the parts of them that do not.
LIBRARIES = frozenset({
    "aiohttp", "aiosmtplib", "anymail", "authlib", "dns.asyncquery", "dns.asyncresolver", "dns.query", "dns.resolver",
    "ftplib", "http.client", "httpx", "imaplib", "kombu", "poplib", "psycopg", "redis", "requests", "smtplib", "socket",
    "spf", "telnetlib", "urllib.request", "urllib3", "websockets", "xmlrpc",
})  # fmt: skip
HARMLESS = (".exceptions", ".errors", ".signals", ".urls")
# What opens connections to destinations of the caller, by its name.
CALLS = frozenset({
    "Celery", "CheckedResolver", "GuardedAdapter", "GuardedSession", "MxLookup", "Resolver", "SessionFactory",
    "ask_redis", "connect_redis", "get_connection", "send_mail",
})  # fmt: skip
METHODS = frozenset({"create_connection", "create_datagram_endpoint", "getaddrinfo", "open_connection", "sock_connect"})
# Modules that use such a library and have no destination.
WITHOUT_DESTINATION = {
    "config.gunicorn": "listens",
    "config.heartbeats": "reads the name of the machine",
    "config.management.commands.serve": "listens",
    "config.web.worker": "listens",
    "config.worker": "reads the name of the machine",
    "console.privacy.destinations": "reads the addresses of the name servers",
    "core.api.admission": "serves clients",
    "core.api.transfers": "serves clients",
    "core.delivery.transports.source_addresses": "binds an address",
    "core.lib.network.guarded_http": "the guard: its callers have destinations",
    "core.lib.network.guarded_requests": "the guard: its callers have destinations",
    "core.lib.network.listening": "listens",
    "core.lib.network.slow_clients": "serves clients",
    "emails.pacing.paces": "reads the name of the machine",
    "events.stream": "serves clients",
    "interfaces.inbound.inbox.server": "listens",
    "interfaces.inbound.management.commands.inbound": "listens",
    "interfaces.inbound.server": "listens",
    "interfaces.submission.server": "listens",
}


def product_modules():
    """Yield the name and source of each module of the product."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    names = subprocess.run(listed, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout.split()
    for name in names:
        if not name.startswith(("tests/", "clients/", "tools/", "bin/")) and "/migrations/" not in name:
            path = REPOSITORY / name
            if path.exists():
                yield name.removesuffix(".py").removesuffix("/__init__").replace("/", "."), path.read_text("utf-8")


def uses_of_network(source: str) -> set[str]:
    """Return the names in a module that stand for a connection."""
    return {use for node in ast.walk(ast.parse(source)) for use in _uses(node)}


def _uses(node: ast.AST) -> set[str]:
    match node:
        case ast.Import(names=names):
            return {alias.name for alias in names if _is_network(alias.name)}
        case ast.ImportFrom(module=str(module), names=names) if not module.endswith(HARMLESS):
            return {f"{module}.{alias.name}" for alias in names if _is_network(f"{module}.{alias.name}")}
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)) if name in CALLS:
            return {name}
        case ast.Attribute(attr=name) if name in METHODS:
            return {name}
    return set()


def _is_network(name: str) -> bool:
    return not name.endswith(HARMLESS) and any(name == one or name.startswith(f"{one}.") for one in LIBRARIES)


def declared_modules() -> set[str]:
    return {module for kind in KINDS for module in kind.modules}


def test_each_module_that_opens_connections_belongs_to_a_kind():
    found = {name: uses for name, source in product_modules() if (uses := uses_of_network(source))}
    named = declared_modules() | WITHOUT_DESTINATION.keys()
    unknown = {name: uses for name, uses in found.items() if name not in named}
    assert unknown == {}, "add the destination to console/privacy/connections.py and docs/guides/connections.md"
    assert declared_modules() - found.keys() == set()
    assert WITHOUT_DESTINATION.keys() - found.keys() == set()
    assert declared_modules() & WITHOUT_DESTINATION.keys() == set()


@each("source", [
    "import requests",
    "from aiohttp import ClientSession",
    "import urllib.request",
    "def call():\n    from core.lib.network.guarded_http import GuardedSession\n    GuardedSession(rules)",
    "import asyncio\nasyncio.open_connection(host, 25)",
    "from dns import asyncresolver",
    "mail.get_connection()",
])  # fmt: skip
def test_a_new_caller_would_be_noticed(source):
    assert uses_of_network(source)


@each("source", [
    "from requests.exceptions import Timeout", "import asyncio", "from psycopg.errors import QueryCanceled",
])  # fmt: skip
def test_errors_of_a_library_are_no_connection(source):
    assert not uses_of_network(source)


def table_of(path: Path) -> list[tuple[str, ...]]:
    rows = [line for line in path.read_text("utf-8").splitlines() if line.startswith("| ")]
    return [tuple(cell.strip().replace("`", "") for cell in row.strip("|").split("|")) for row in rows[1:]]


def test_the_guide_has_each_kind():
    with override("en"):
        assert table_of(GUIDE) == [(str(kind.title), str(kind.purpose), kind.setting) for kind in KINDS]


def destinations(name: str) -> list[str]:
    (kind,) = (kind for kind in KINDS if kind.name == name)
    with override("en"):
        return list(kind.find())


def with_transports(settings, *specs: TransportSpec) -> None:
    members = {spec.name: spec for spec in specs}
    routes = {"default": TransportRoute("default", tuple(members))}
    settings.TRANSPORTS = Transports(members, routes, {"default": ("default",)})


class TestDestinations:
    def test_of_transports_follow_the_transports_in_force(self, settings):
        settings.TRANSPORTS = single_transport("inbox")
        settings.INBOX_PORT = 2527
        assert destinations("mail_hosts") == destinations("relays") == destinations("providers") == []
        assert destinations("own_servers") == ["127.0.0.1:2527"]
        settings.TRANSPORTS, settings.SMTP_URL = single_transport("smtp"), "smtp://ada:secret@relay.example"
        assert destinations("relays") == ["relay.example:587"]
        settings.TRANSPORTS = single_transport("anymail")
        settings.ANYMAIL_BACKEND = "anymail.backends.postmark.EmailBackend"
        assert destinations("providers") == ["the API of the provider: postmark"]
        settings.TRANSPORTS, settings.RECEIVING_SERVER = single_transport("direct"), ("::1", 25)
        assert destinations("mail_hosts") == ["the mail hosts of all recipients, port 25"]
        assert destinations("own_servers") == ["[::1]:25"]

    def test_of_a_transports_file_are_all_shown_without_secrets(self, settings):
        relay = parse_smtp_url("smtps://ada:secret@relay.example")
        with_transports(
            settings,
            TransportSpec(name="own", kind="direct"),
            TransportSpec(name="relay", kind="smtp", relay=relay),
            TransportSpec(name="ses", kind="anymail", backend="anymail.backends.amazon_ses.EmailBackend"),
        )
        assert destinations("mail_hosts") == ["the mail hosts of all recipients, port 25"]
        assert destinations("relays") == ["relay.example:465"]
        assert destinations("providers") == ["the API of the provider: amazon_ses"]

    @each(("host", "port", "shown"), [
        ("db1,db2", "5432,6432", ["db1:5432", "db2:6432"]),
        ("db1,db2", "", ["db1:5432", "db2:5432"]),
        ("::1", "6432", ["[::1]:6432"]),
        ("/run/postgresql", "", ["/run/postgresql"]),
        ("", "", ["localhost:5432"]),
    ])  # fmt: skip
    def test_of_databases_are_all_servers(self, settings, monkeypatch, host, port, shown):
        monkeypatch.setitem(settings.DATABASES["default"], "HOST", host)
        monkeypatch.setitem(settings.DATABASES["default"], "PORT", port)
        assert destinations("database") == shown

    def test_of_redis_are_all_servers_without_accounts(self, settings):
        settings.REDIS_URL = "rediss://:secret@cache.example/0"
        assert destinations("redis") == ["cache.example:6379"]
        settings.REDIS_URL = "redis+sentinel://:secret@one:26379,two/service/0"
        assert destinations("redis") == ["one:26379", "two:26379", "the primary that they name"]

    def test_of_optional_services_are_shown_only_if_they_are_set(self, settings):
        settings.OIDC_ISSUER = settings.RSPAMD_URL = ""
        settings.RECEIVING_DNSBL = []
        settings.TRANSPORTS = single_transport("smtp")
        for name in ("identity_provider", "spam_filter", "block_lists"):
            assert destinations(name) == [], name
        settings.OIDC_ISSUER, settings.RSPAMD_URL = "https://id.example/realms/x", "http://127.0.0.1:11333"
        settings.RECEIVING_DNSBL = ["zen.spamhaus.org"]
        assert destinations("identity_provider") == ["id.example:443", "the hosts of its endpoints"]
        assert destinations("spam_filter") == ["127.0.0.1:11333"]
        assert destinations("block_lists") == ["zen.spamhaus.org"]

    def test_of_canaries_is_the_host_of_the_url(self, settings):
        settings.CANARY_MINUTES, settings.CANARY_PING_URL = 0, "https://hc-ping.com/secret-check"
        assert destinations("canary") == []
        settings.CANARY_MINUTES = 15
        assert destinations("canary") == ["hc-ping.com:443"]

    def test_of_name_servers_are_those_of_the_system_without_a_setting(self, settings):
        settings.DNS_SERVERS = [("192.0.2.53", 5353), ("2001:db8::53", 53)]
        assert destinations("dns") == ["192.0.2.53:5353", "[2001:db8::53]:53"]
        settings.DNS_SERVERS = []
        assert all(server.endswith(":53") for server in destinations("dns"))

    def test_of_webhooks_have_the_ports_in_force(self, settings):
        settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS, settings.WEBHOOK_PORTS = False, [443, 8443]
        assert destinations("webhooks") == ["the URLs of webhooks, port 443, 8443"]
        assert destinations("files") == ["the URLs of attachments, port 443, 8443"]
        settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = True
        assert destinations("webhooks") == ["the URLs of webhooks, any port"]

    def test_of_checks_and_certificates(self, settings):
        settings.PUBLIC_URL, settings.SECURE, settings.TRACKING_CA = "https://mail.example", True, "ca.example"
        settings.SUBMISSION_TLS_CERT, settings.RECEIVING_MX = "", ["mx.example"]
        assert destinations("checked_servers") == ["mail.example:443", "mx.example:25"]
        assert destinations("tracking_hosts") == ["the tracking hosts of sending domains, port 443"]
        assert destinations("authority") == ["ca.example"]
        settings.PUBLIC_URL, settings.SECURE = "http://127.0.0.1:8000", False
        assert destinations("authority") == []
