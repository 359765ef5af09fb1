"""`manage.py doctor` finds planted faults and names their remedies, and finds nothing in a sound installation.

DNS answers come from the name server of the tests; PostgreSQL, Redis, the TLS proxy, web, inbound and the relay are
real.
"""

import json
import os
import ssl
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from http.server import ThreadingHTTPServer
from io import StringIO
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import time_machine
import trustme
from aiosmtpd.controller import Controller
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from redis import Redis

from config.doctor.checks import CHECKS, run_checks
from config.doctor.diagnosis import DoctorOptions, Verdict
from config.doctor.installation import check_database_tls
from config.heartbeats import PREFIX, send_heartbeat
from console.dashboard.auth.oidc.provider import forget_documents
from core.delivery.recipients import RecipientSetting, read_recipients
from core.delivery.sources.answers import ListingAnswer, ReverseName, ReverseStatus
from core.delivery.transports.router import TransportReport
from core.delivery.transports.transports_file import TransportRoute, Transports, TransportSpec
from core.lib.ids import new_id
from core.workspaces.models import Workspace
from core.workspaces.recipients.rules import read_rules
from domains.models import DkimKey, Domain, ReceivingDomain, TrackingHost
from emails.models import QueueEntry
from emails.receivers.changes import suspend_pair
from emails.sending.transport_status import drain_transport, send_reports
from emails.sources.watch import SourceFinding, record_findings
from streams.models import Stream
from tests.config.test_start import start
from tests.config.tls_proxy import OtherSite, TlsProxy, serving, web_server
from tests.conftest import make_domain
from tests.console.dashboard.auth.oidc.forging_provider import ForgingProvider, forging_provider
from tests.core.lib.nameserver import NameServer
from tests.emails.receivers.builders import make_pair, make_suspended
from tests.interfaces.inbound.fixtures import run_inbound
from tests.interfaces.submission.fixtures import run_submission
from tests.rows import each
from tests.stack.stack import free_port

HOST = "mail.example.com"
ZONES = {
    HOST: {"A": ["127.0.0.1"]},
    "1.0.0.127.in-addr.arpa": {"PTR": [f"{HOST}."]},
    "example.com": {"TXT": ['"v=spf1 ip4:127.0.0.1 -all"']},
    "bounce.example.com": {"MX": [f"10 {HOST}."]},
    "reports.example._report._dmarc.bounce.example.com": {"TXT": ['"v=DMARC1"']},
    "gmail.com": {"MX": [f"5 {HOST}."]},
    "inbound.example.com": {"MX": [f"10 {HOST}."]},
}
PROXIES = [ip_network("127.0.0.0/8")]
CLOSED_PORT = 1


@dataclass
class Installation:
    """A sound installation, to plant faults in."""

    settings: Any
    dns: NameServer
    proxy: TlsProxy
    redis: Any
    context: ssl.SSLContext
    authority: trustme.CA
    api: Any
    directory: Path
    stack: ExitStack
    provider: ForgingProvider

    def use_certificate_for(self, name: str) -> None:
        trustme.CA().issue_cert(name).configure_cert(self.context)

    def write_submission_certificate(self, authority: trustme.CA, name: str = HOST, **options: Any) -> None:
        """Write the files of submission, which reads them again at the next connection."""
        issued = authority.issue_cert(name, **options)
        self.settings.SUBMISSION_TLS_CERT = str(self.directory / "submission.pem")
        self.settings.SUBMISSION_TLS_KEY = str(self.directory / "submission.key")
        issued.private_key_pem.write_to_path(self.settings.SUBMISSION_TLS_KEY)
        issued.cert_chain_pems[0].write_to_path(self.settings.SUBMISSION_TLS_CERT)


@pytest.fixture
def installation(settings, monkeypatch, tmp_path, api):
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(HOST).configure_cert(context)
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with ExitStack() as stack:
        dns = stack.enter_context(NameServer(ZONES))
        inbound = stack.enter_context(run_inbound())
        web_port = stack.enter_context(web_server())
        proxy = TlsProxy(context)
        proxy.upstream = web_port
        stack.enter_context(serving(proxy.server))
        configure(settings, monkeypatch, dns=dns, public_port=proxy.port, smtp_port=inbound.number)
        send_heartbeat(None)
        with connection.cursor() as cursor:
            cursor.execute("SET synchronous_commit = on")
        provider = stack.enter_context(forging_provider())
        configure_provider(settings, monkeypatch, provider, roles=tmp_path / "roles.yaml")
        with Redis.from_url(settings.REDIS_URL) as client:
            sound = Installation(settings, dns, proxy, client, context, ca, api, tmp_path, stack, provider)
            sound.write_submission_certificate(ca)
            stack.enter_context(run_submission(settings))
            yield sound
            client.flushdb()


def configure(settings, monkeypatch, *, dns, public_port, smtp_port):
    values = {
        "PUBLIC_URL": f"https://{HOST}:{public_port}",
        "SYSTEM_FROM": "Example Mail <no-reply@example.com>",
        "SPF_MECHANISMS": "ip4:127.0.0.1",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
        setattr(settings, name, value)
    settings.EMBEDDED, settings.SECURE = False, True
    settings.ALLOWED_HOSTS = [HOST, "testserver"]
    settings.TRUSTED_PROXIES = PROXIES
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.EHLO_NAME, settings.RETURN_PATH_DOMAIN = HOST, "bounce.example.com"
    settings.DELIVERY_TRANSPORT, settings.DELIVERY_ALLOW_PRIVATE_NETWORKS = "direct", True
    settings.DIRECT_SMTP_PORT, settings.DNS_SERVERS = smtp_port, [dns.address]
    settings.SUBMISSION_ALLOW_PLAINTEXT = False
    settings.RECEIVING_DOMAIN, settings.RECEIVING_MX = "inbound.example.com", [HOST]


def configure_provider(settings, monkeypatch, provider, *, roles):
    forget_documents()
    roles.write_text("[{claim: groups, value: mail-admins, staff: true}]")
    values = {
        "OIDC_ISSUER": provider.issuer,
        "OIDC_CLIENT_ID": "postrider",
        "OIDC_CLIENT_SECRET": "secret-password",
        "OIDC_ALLOW_PRIVATE_NETWORKS": True,
        "OIDC_ROLES_FILE": str(roles),
    }
    for name, value in values.items():
        monkeypatch.setenv(name, str(value))
        setattr(settings, name, value)


def diagnose(**options):
    return run_checks(DoctorOptions(probe_domains=("gmail.com",), min_free_gib=0.001, **options))


def test_a_sound_installation_has_no_fault(installation, collected):
    (installation.directory / "backup.dump").write_bytes(b"PGDMP")
    diagnoses = diagnose(backups=installation.directory)
    others = {name: one.verdict for name, one in diagnoses.items() if one.verdict is not Verdict.OK}
    # Without a relay, a standby, source addresses, canaries and TLS reports.
    skipped = ("standby", "standby_lag", "block_lists", "source_names", "relay", "canary", "canary_runs", "tls_reports")
    assert others == dict.fromkeys(skipped, Verdict.SKIPPED)
    assert list(diagnoses) == [check.name for check in CHECKS]


def setting(**values):
    """Return a fault: other values of settings."""

    def plant(installation):
        for name, value in values.items():
            setattr(installation.settings, name, value)

    return plant


def answer(name, **records):
    """Return a fault: other DNS records of a name, or none."""
    return lambda installation: installation.dns.put(name, records) if records else installation.dns.remove(name)


def provider(path, status, body):
    return lambda installation: installation.provider.responses.update({path: (status, body)})


def forward_no(header):
    return lambda installation: installation.proxy.forwarded.pop(header)


def use_old_database(_):
    """Answer as an old PostgreSQL does when it is asked for its version."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA old")
        cursor.execute(
            "CREATE FUNCTION old.current_setting(name text) RETURNS text LANGUAGE sql RETURN CASE name "
            "WHEN 'server_version_num' THEN '140019' ELSE pg_catalog.current_setting(name) END"
        )
        cursor.execute("SET search_path = old, pg_catalog, public")


def remove_extension(_):
    with connection.cursor() as cursor:
        cursor.execute("DROP EXTENSION pg_trgm CASCADE")


def switch_synchronous_commit_off(_):
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")


def forget_migration(_):
    newest = ("0049_tls_reports",)
    MigrationRecorder.Migration.objects.filter(app="emails", name__in=newest).delete()


def use_resolver_that_validates_nothing(installation):
    installation.settings.DNSSEC_RESOLVER = [installation.dns.address]


def remove_plan(_):
    Workspace.objects.update(plan="business")


def set_clock_back(installation):
    installation.stack.enter_context(time_machine.travel(timezone.now() - timedelta(minutes=10)))


def stop_workers(installation):
    installation.redis.delete(*installation.redis.scan_iter(match=f"{PREFIX}*"))


def reject_login(_):
    send_heartbeat("The relay rejects the login in SMTP_URL.")


def delay_recipient(installation):
    body = {"from": "hi@alice.example", "to": "ada@example.com", "subject": "Hi", "text": "Hi"}
    assert installation.api.post("/emails/send", body).status_code == 202
    QueueEntry.objects.update(due_at=timezone.now() - timedelta(hours=1))


def use_other_certificate(installation):
    installation.use_certificate_for("other.example.com")


def lose_target_of_hosts(installation):
    TrackingHost.objects.create(workspace=Workspace.objects.first(), name="links.alice.example")
    installation.settings.TRACKING_HOST = "gone.example.com"


def receive_for_alice():
    domain = Domain.objects.get(name="alice.example")
    ReceivingDomain.objects.create(
        domain=domain, workspace=domain.workspace, name=domain.name, status="active", proven_at=timezone.now()
    )


def receive_without_a_name(installation):
    receive_for_alice()
    installation.settings.RECEIVING_MX, installation.settings.EHLO_NAME = [], "localhost"


def receive_at_a_closed_port(installation):
    receive_for_alice()
    installation.settings.DIRECT_SMTP_PORT = free_port()


def lose_mail_host(installation):
    receive_for_alice()
    installation.settings.RECEIVING_MX = [HOST, "gone.example.com"]


def serve_other_site(installation):
    server = ThreadingHTTPServer(("127.0.0.1", 0), OtherSite)
    installation.proxy.upstream = installation.stack.enter_context(serving(server))


class RejectingHandler:
    async def handle_RCPT(self, *_: Any) -> str:  # noqa: N802 - aiosmtpd's name
        return "550 5.7.1 Relaying denied"


@contextmanager
def other_mail_server():
    controller = Controller(RejectingHandler(), hostname="127.0.0.1", port=free_port())
    controller.start()
    try:
        yield controller.port
    finally:
        controller.stop()


def lead_mx_elsewhere(installation):
    installation.settings.DIRECT_SMTP_PORT = installation.stack.enter_context(other_mail_server())


def use_relay(installation, url):
    installation.settings.DELIVERY_TRANSPORT, installation.settings.SMTP_URL = "smtp", url


def use_relay_with_invalid_certificate(installation):
    use_relay(installation, f"smtps://127.0.0.1:{installation.proxy.port}")


def use_relay_without_tls(installation):
    port = installation.stack.enter_context(other_mail_server())
    use_relay(installation, f"smtp://user:secret-password@127.0.0.1:{port}")


def use_unknown_authority_for_submission(installation):
    installation.write_submission_certificate(trustme.CA())


def use_other_name_for_submission(installation):
    installation.write_submission_certificate(installation.authority, "other.example.com")


def submit_without_tls(installation):
    installation.settings.SUBMISSION_PORTS = [installation.stack.enter_context(other_mail_server())]


def mix_submission_files(installation):
    trustme.CA().issue_cert(HOST).private_key_pem.write_to_path(installation.settings.SUBMISSION_TLS_KEY)


def name_another_issuer(installation):
    installation.provider.metadata["issuer"] = "https://other.example"


def set_clock_of_provider_forward(installation):
    installation.provider.clock_ahead_seconds = 600


def name_an_unknown_workspace(installation):
    rule = f"{{claim: groups, value: mail, workspace: {new_id('ws_')}, role: member}}"
    Path(installation.settings.OIDC_ROLES_FILE).write_text(f"[{rule}]")


def name_transports(installation, **specs):
    transports = {name: TransportSpec(name=name, kind="direct", **options) for name, options in specs.items()}
    route = TransportRoute("default", tuple(transports))
    installation.settings.TRANSPORTS = Transports(transports, {"default": route}, {"default": ("default",)})


def forget_route_of_stream(installation):
    Stream.objects.create(workspace=Workspace.objects.first(), slug="news", name="News", transport_route="bulk")


def pause_transport(installation):
    name_transports(installation, own={}, relay={})
    send_reports([TransportReport("own", "paused", "2026-11-20T08:00:00.000Z", "535 5.7.8 Authentication failed")])


def drain(installation):
    name_transports(installation, own={}, relay={})
    drain_transport("relay")


def suspend_receivers(installation):
    suspend_pair(make_pair("google"))
    make_suspended("yahoo")


def misalign_domain(installation):
    name_transports(installation, own={"spf": "ip4:192.0.2.1"})
    domain = Domain.objects.create(workspace=Workspace.objects.first(), name="shop.example", status="verified")
    Domain.objects.filter(id=domain.id).update(spf_passing="include:_spf.example.com")


def note_listing(installation, *, error=""):
    """Let a block list have an own address without a reverse name. error: the list cannot be asked."""
    address = ip_address("9.9.9.9")
    name_transports(installation, own={"source_addresses": (address,), "spf": "ip4:127.0.0.1"})
    installation.settings.BLOCKLISTS = ["zen.spamhaus.org"]
    answer = ListingAnswer(None, error=error) if error else ListingAnswer(True, ("127.0.0.2",))
    finding = SourceFinding(ReverseName(ReverseStatus.MISSING), {"zen.spamhaus.org": answer})
    record_findings({address: finding})


def refuse_queries(installation):
    note_listing(installation, error="the list refuses queries of public resolvers")


def add_new_address(installation, *, day=date(2026, 1, 1), **fields):
    """Let the only transport have a new address and no other one."""
    address = ip_address("9.9.9.9")
    fields = {"source_addresses": (address,), "since": {address: day}, "spf": "ip4:127.0.0.1", **fields}
    name_transports(installation, own=fields)


def add_new_address_without_other_ways(installation):
    add_new_address(installation, day=datetime.now(UTC).date())


def add_address_of_next_year(installation):
    day = datetime.now(UTC).date() + timedelta(days=365)
    warm = (ip_address("9.9.9.9"), ip_address("9.9.9.8"))
    add_new_address(installation, day=day, source_addresses=warm)


RULES = RecipientSetting(rules=read_rules(allow=["@example.org"]))
CANARY = {"CANARY_MINUTES": 15, "CANARY_ADDRESS": "canary@inbound.example.com"}


def verify_sender(installation):
    """Let canaries be signed, and go to a domain that is received here."""
    setting(**CANARY)(installation)
    make_verified_domain("example.com")


def sign_reports_with_another_key(installation):
    """Publish the key of TLS reports for another service."""
    setting(TLSRPT_DOMAIN="example.com")(installation)
    make_verified_domain("example.com")
    key = DkimKey.objects.get(domain__name="example.com").public_key
    record = f"v=DKIM1; s=email; k=rsa; p={key}"
    chunks = " ".join(f'"{record[at : at + 200]}"' for at in range(0, len(record), 200))
    installation.dns.put("tlsrpt._domainkey.example.com", {"TXT": [chunks]})


def make_verified_domain(name):
    domain = make_domain(Workspace.objects.first(), name)
    Domain.objects.filter(id=domain.id).update(status="verified")


# Fault, check, and texts of its message and its remedy.
FAULTS = [
    (
        setting(TLSRPT_DOMAIN="example.com"),
        "tls_reports",
        "no workspace has verified example.com",
        "Add example.com as a sending domain",
    ),
    (
        sign_reports_with_another_key,
        "tls_reports",
        "tlsrpt._domainkey.example.com does not have the key",
        "Publish the TXT record v=DKIM1; s=tlsrpt; k=rsa; p=",
    ),
    (forget_route_of_stream, "transports", "no route 'bulk'", "Correct TRANSPORTS_FILE"),
    (provider("/keys", 503, {}), "identity_provider", "cannot be reached", "Correct OIDC_ISSUER"),
    (name_another_issuer, "identity_provider", "another issuer", "as its discovery document writes it"),
    (set_clock_of_provider_forward, "identity_clock", "differs by", "NTP"),
    (
        provider("/authorize", 400, b"unknown redirect_uri"),
        "identity_redirect",
        "refuses a sign-in",
        "/dashboard/oidc/callback",
    ),
    (name_an_unknown_workspace, "identity_roles", "do not exist", "Correct the ids"),
    (
        setting(SUBMISSION_PORTS=[CLOSED_PORT], SUBMISSION_TLS_PORTS=[]),
        "submission",
        "No submission server answers",
        "Start manage.py submission",
    ),
    (use_unknown_authority_for_submission, "submission", "is not valid for", "Renew the certificate"),
    (use_other_name_for_submission, "submission", "is not valid for", "Renew the certificate"),
    (submit_without_tls, "submission", "cannot be used with TLS", "Set SUBMISSION_TLS_CERT"),
    (mix_submission_files, "submission_certificate", "cannot be used", "one certificate and its key"),
    (
        setting(SUBMISSION_TLS_KEY="/nonexistent/submission.key"),
        "submission_certificate",
        "cannot be used",
        "one certificate and its key",
    ),
    (setting(METRICS_TOKEN="hunter2"), "settings", "METRICS_TOKEN is too easy to guess", "Correct these settings"),
    (use_old_database, "database_version", "is version 14", "Upgrade the cluster to PostgreSQL 15"),
    (remove_extension, "extension", "lacks the extension pg_trgm", "CREATE EXTENSION pg_trgm"),
    (switch_synchronous_commit_off, "synchronous_commit", "is off", "Set synchronous_commit = on"),
    (forget_migration, "migrations", "1 database migrations", "Run manage.py migrate"),
    (remove_plan, "plans", "plans that do not exist, such as 'business'", "Add the plan to PLANS_FILE"),
    (set_clock_back, "clock", "differ by 600 seconds", "NTP"),
    (setting(REDIS_URL=f"redis://127.0.0.1:{CLOSED_PORT}/0"), "redis", "Redis does not respond", "REDIS_URL"),
    (stop_workers, "workers", "No worker process", "Start manage.py worker"),
    (setting(**CANARY), "canary", "no workspace has verified example.com", "Add example.com as a sending domain"),
    (reject_login, "transport", "The relay rejects the login", "Correct SMTP_URL"),
    (delay_recipient, "queue", "no worker is sending", "Start workers"),
    (answer(HOST), "public_url", f"{HOST} has no address", f"Publish A or AAAA records for {HOST}"),
    (use_other_certificate, "public_url", "certificate", f"Renew the certificate for {HOST}"),
    (setting(PUBLIC_URL=f"https://{HOST}:{CLOSED_PORT}"), "public_url", "cannot be reached", "Start the reverse proxy"),
    (serve_other_site, "public_url", "Another service answers", "SECRET_KEY"),
    (
        setting(ALLOWED_HOSTS=["other.example.com"]),
        "public_url",
        f"Web rejects the host {HOST}",
        f"Add {HOST} to ALLOWED_HOSTS",
    ),
    (setting(TRUSTED_PROXIES=[]), "proxy", "not a trusted proxy", "Add 127.0.0.1 or its network to TRUSTED_PROXIES"),
    (forward_no("X-Forwarded-Proto"), "proxy", "does not mark requests as https", "X-Forwarded-Proto to https"),
    (forward_no("X-Forwarded-For"), "proxy", "addresses of clients", "X-Forwarded-For"),
    (lose_target_of_hosts, "tracking_hosts", "has no usable address", "correct TRACKING_HOST"),
    (receive_without_a_name, "receiving", "no name for MX records", "Set RECEIVING_MX"),
    (receive_at_a_closed_port, "receiving", "cannot be reached on port", "open incoming port 25"),
    (lose_mail_host, "receiving", "gone.example.com has no usable address", "correct RECEIVING_MX"),
    (
        setting(RECEIVING_DOMAIN="in.example.com"),
        "receiving_domain",
        "receive nothing",
        f"Publish an MX record at in.example.com with preference 10 and the value {HOST}",
    ),
    (setting(DIRECT_SMTP_PORT=CLOSED_PORT), "port_25", "on port 25", "open outgoing port 25"),
    (setting(EHLO_NAME="localhost"), "ehlo_name", "EHLO_NAME is localhost", "Set EHLO_NAME"),
    (setting(EHLO_NAME="mx9.example.com"), "ehlo_name", "mx9.example.com has no address", "Publish an A record"),
    (
        answer("1.0.0.127.in-addr.arpa", PTR=["vps-7.hoster.example."]),
        "reverse_dns",
        "resolves back to vps-7.hoster.example",
        "Set the reverse DNS (PTR) of 127.0.0.1",
    ),
    (answer("example.com", TXT=['"site-verification=1"']), "spf", "No SPF record found", "v=spf1 ip4:127.0.0.1 ~all"),
    (
        answer("bounce.example.com"),
        "return_path",
        "no MX record",
        f"Publish an MX record at bounce.example.com with preference 10 and the value {HOST}",
    ),
    (
        setting(RETURN_PATH_DOMAIN="bounce.localhost"),
        "return_path",
        "RETURN_PATH_DOMAIN is not set",
        "Set RETURN_PATH_DOMAIN",
    ),
    (lead_mx_elsewhere, "inbound", "550 5.7.1 Relaying denied", "Start manage.py inbound"),
    (use_relay_with_invalid_certificate, "relay", "TLS with the host failed", "the relay's certificate"),
    (use_relay_without_tls, "relay", "offers no TLS", "the relay's certificate"),
    (
        setting(DELIVERY_TRANSPORT="smtp", SMTP_URL=f"smtp://127.0.0.1:{CLOSED_PORT}"),
        "relay",
        "Could not connect",
        "Compare host and port in SMTP_URL",
    ),
]
WARNINGS = [
    (setting(SUBMISSION_ALLOW_PLAINTEXT=True), "submission_plaintext", "", "SUBMISSION_ALLOW_PLAINTEXT"),
    (provider("/authorize", 200, b"<html>"), "identity_redirect", "does not say", "Register"),
    (setting(RECIPIENTS=read_recipients("captured")), "recipients", "no recipient gets email", "Set RECIPIENTS=all"),
    (setting(RECIPIENTS=RULES), "recipients", "only the recipients that it allows get email", "Set RECIPIENTS=all"),
    (setting(**CANARY, RECIPIENTS=RULES), "canary_runs", "No canary is sent: RECIPIENTS lets", "Set CANARY_MINUTES=0"),
    # While another one works.
    (pause_transport, "transports", "535 5.7.8 Authentication failed", ""),
    (suspend_receivers, "receivers", "Google from 192.0.2.1, suspended by the staff; Yahoo from", "receivers release"),
    (drain, "transports", "Drained: relay.", "transport resume"),
    (note_listing, "block_lists", "9.9.9.9 is on zen.spamhaus.org since", "check.spamhaus.org/results/?query=9.9.9.9"),
    (refuse_queries, "block_lists", "zen.spamhaus.org: the list refuses queries of public resolvers", "DNS_SERVERS"),
    (note_listing, "source_names", "9.9.9.9 resolves to no name", "Set the reverse DNS (PTR)"),
    (use_resolver_that_validates_nothing, "tls_policies", "does not validate the root zone", "Set DNSSEC_RESOLVER"),
    (add_new_address_without_other_ways, "new_addresses", "waits for the next day once 9.9.9.9", "add an address"),
    (add_address_of_next_year, "new_addresses", "9.9.9.9 sends nothing before 2", "Correct since"),
    (verify_sender, "canary", "do not leave this installation", "forwards to canary@bounce.example.com"),
    (verify_sender, "canary_runs", "No canary has been sent for 22 minutes", "Look at the canaries"),
    (
        answer("reports.example._report._dmarc.bounce.example.com"),
        "report_domain",
        "Receivers send no DMARC reports to bounce.example.com",
        "Publish a TXT record at *._report._dmarc.bounce.example.com",
    ),
    (misalign_domain, "alignment", "domain_not_aligned: the SPF records of shop.example lack ip4:192.0.2.1", ""),
]
ROWS = [(*row, Verdict.FAILED) for row in FAULTS] + [(*row, Verdict.WARNING) for row in WARNINGS]
# Checks whose faults have tests below, in test_standby and in test_static_files.
OTHER_CHECKS = {
    "database", "database_tls", "receiving_domains", "static_files", "disk", "backups", "standby", "standby_lag",
}  # fmt: skip


def test_every_check_has_a_planted_fault():
    assert {check for _, check, *_ in ROWS} | OTHER_CHECKS == {check.name for check in CHECKS}


@pytest.mark.parametrize(
    ("plant", "check", "message", "remedy", "verdict"), ROWS, ids=[f"{row[1]} {row[2]}" for row in ROWS]
)
def test_each_planted_fault_is_found_with_its_remedy(installation, plant, check, message, remedy, verdict):
    plant(installation)
    diagnosis = diagnose()[check]
    assert diagnosis.verdict is verdict, diagnosis
    assert message in diagnosis.message
    assert remedy in diagnosis.remedy
    assert "secret-password" not in diagnosis.message + diagnosis.remedy


def test_receiving_works_while_all_mx_records_lead_here(installation):
    receive_for_alice()
    installation.dns.put("alice.example", {"MX": [f"10 {HOST}."]})
    installation.dns.put("in.example.com", {"MX": [f"10 {HOST}."]})
    installation.settings.RECEIVING_DOMAIN = "in.example.com"
    diagnoses = diagnose()
    names = ("receiving", "receiving_domain", "receiving_domains")
    assert {name: diagnoses[name].verdict for name in names} == dict.fromkeys(names, Verdict.OK)
    assert f"{HOST} can be reached on port" in diagnoses["receiving"].message


def test_a_receiving_domain_that_leads_elsewhere_is_a_warning(installation):
    receive_for_alice()
    installation.dns.put("alice.example", {"MX": ["5 mx.other.example.", f"10 {HOST}."]})
    diagnosis = diagnose()["receiving_domains"]
    assert (diagnosis.verdict, "1 of 1" in diagnosis.message) == (Verdict.WARNING, True)
    assert "mx.other.example" in diagnosis.message


@pytest.mark.parametrize(
    ("query", "verdict", "remedy"),
    [("", Verdict.WARNING, "Use smtps:// or a relay with STARTTLS"), ("?tls=none", Verdict.OK, "")],
    ids=["not intended", "intended"],
)
def test_a_relay_without_tls_is_a_warning_unless_the_setting_says_so(installation, query, verdict, remedy):
    port = installation.stack.enter_context(other_mail_server())
    use_relay(installation, f"smtp://127.0.0.1:{port}{query}")
    diagnosis = diagnose()["relay"]
    assert (diagnosis.verdict, remedy in diagnosis.remedy) == (verdict, True)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("days", "verdict", "message"),
    [(30, Verdict.OK, "is valid until"), (13, Verdict.WARNING, "expires on"), (-2, Verdict.FAILED, "expired on")],
)
def test_a_certificate_of_submission_is_renewed_in_time(installation, days, verdict, message):
    expires_at = timezone.now() + timedelta(days=days, hours=1)
    installation.write_submission_certificate(
        installation.authority, not_before=timezone.now() - timedelta(days=60), not_after=expires_at
    )
    diagnoses = diagnose()
    diagnosis = diagnoses["submission_certificate"]
    assert (diagnosis.verdict, message in diagnosis.message) == (verdict, True), diagnosis
    assert bool(diagnosis.remedy) is (verdict is not Verdict.OK)
    assert diagnoses["submission"].verdict is verdict


@each(
    ("host", "mode", "verdict"),
    [
        ("db.example.com", "", Verdict.WARNING),
        ("db.example.com", "require", Verdict.WARNING),
        ("db.example.com", "verify-full", Verdict.OK),
        ("127.0.0.1,203.0.113.9", "", Verdict.WARNING),
        ("2001:db8::1", "", Verdict.WARNING),
        ("127.0.0.1", "", Verdict.OK),
        ("/run/postgresql", "", Verdict.OK),
        ("postgres", "", Verdict.OK),
    ],
)
def test_a_database_elsewhere_is_verified(settings, monkeypatch, host, mode, verdict):
    database = settings.DATABASES["default"]
    options = {**database["OPTIONS"], "sslmode": mode}
    monkeypatch.setitem(settings.DATABASES, "default", {**database, "HOST": host, "OPTIONS": options})
    settings.EMBEDDED = False
    diagnosis = check_database_tls(DoctorOptions())
    assert diagnosis.verdict is verdict
    assert ("sslmode=verify-full" in diagnosis.remedy) is (verdict is Verdict.WARNING)


def test_a_missing_name_is_not_a_fault_of_submission(installation):
    installation.dns.remove(HOST)
    diagnoses = diagnose()
    assert diagnoses["submission"].verdict is Verdict.SKIPPED
    assert f"{HOST} has no usable address" in diagnoses["submission"].message
    assert diagnoses["public_url"].verdict is Verdict.FAILED


def test_an_installation_without_submission_is_sound(installation):
    installation.settings.SUBMISSION_PORTS, installation.settings.SUBMISSION_TLS_PORTS = [CLOSED_PORT], []
    installation.settings.SUBMISSION_TLS_CERT = installation.settings.SUBMISSION_TLS_KEY = ""
    diagnoses = diagnose()
    assert {diagnoses[name].verdict for name in ("submission", "submission_certificate")} == {Verdict.SKIPPED}


@pytest.mark.django_db
def test_failed_tracking_hosts_are_a_warning(installation):
    installation.settings.TRACKING_HOST = HOST
    assert "No sending domain has" in diagnose()["tracking_hosts"].message
    workspace = Workspace.objects.first()
    TrackingHost.objects.create(workspace=workspace, name="links.a.example", status="active")
    assert diagnose()["tracking_hosts"].verdict is Verdict.OK
    TrackingHost.objects.create(workspace=workspace, name="links.b.example", status="failed")
    diagnosis = diagnose()["tracking_hosts"]
    assert (diagnosis.verdict, "1 of 2" in diagnosis.message) == (Verdict.WARNING, True)
    assert "links.b.example" in diagnosis.message


def test_a_full_disk_is_a_fault():
    diagnosis = run_checks(DoctorOptions(min_free_gib=1e9))["disk"]
    assert diagnosis.verdict is Verdict.FAILED
    assert "Free disk space" in diagnosis.remedy


@pytest.mark.parametrize(
    ("age_hours", "verdict"), [(None, Verdict.FAILED), (25, Verdict.OK), (27, Verdict.FAILED)], ids=str
)
def test_a_missing_or_old_backup_is_a_fault(db, tmp_path, age_hours, verdict):
    if age_hours:
        (tmp_path / "backup.dump").write_bytes(b"PGDMP")
        at = time.time() - age_hours * 3600
        os.utime(tmp_path / "backup.dump", (at, at))
    assert run_checks(DoctorOptions(backups=tmp_path))["backups"].verdict is verdict


def test_an_unfinished_backup_is_none(db, tmp_path):
    (tmp_path / "2026-11-26.dump.unfinished").write_bytes(b"PGDMP")
    assert run_checks(DoctorOptions(backups=tmp_path))["backups"].verdict is Verdict.FAILED


def test_the_report_names_each_remedy_and_the_exit_status_is_1(installation):
    installation.settings.TRUSTED_PROXIES = []
    output = StringIO()
    with pytest.raises(SystemExit) as exit_status:
        call_command("doctor", "--probe-domains", "gmail.com", "--min-free-gib", "0.001", stdout=output)
    assert exit_status.value.code == 1
    assert "→ Add 127.0.0.1 or its network to TRUSTED_PROXIES and restart web." in output.getvalue()
    assert output.getvalue().endswith("1 check failed.\n")


def test_the_exit_status_is_0_and_the_output_is_not_red_without_a_fault(installation):
    output = StringIO()
    call_command("doctor", "--probe-domains", "gmail.com", "--min-free-gib", "0.001", stdout=output, force_color=True)
    assert "\x1b[31;1m" not in output.getvalue()
    assert output.getvalue().endswith("No check failed.\n")


def test_doctor_runs_with_invalid_settings_and_without_a_database():
    with NameServer() as dns:
        run = start("manage.py", "doctor", "--json", "--probe-domains", "gmail.com", SECRET_KEY="changeme",
                    DATABASE_URL=f"postgres://user:secret-password@127.0.0.1:{free_port()}/postrider",
                    REDIS_URL=f"redis://:secret-password@127.0.0.1:{free_port()}/0",
                    DNS_SERVERS=f"127.0.0.1:{dns.address[1]}")  # fmt: skip
    assert run.returncode == 1, run.stderr
    assert "secret-password" not in run.stdout + run.stderr
    report = json.loads(run.stdout)
    verdicts = {check["check"]: check["verdict"] for check in report["checks"]}
    assert report["status"] == "failed"
    assert [verdicts[name] for name in ("settings", "database", "redis", "public_url", "spf")] == ["failed"] * 4 + [
        "skipped"
    ]
    assert {verdicts[name] for name in ("migrations", "workers", "proxy")} == {"skipped"}
    assert all(check["remedy"] for check in report["checks"] if check["verdict"] == "failed")


def test_an_unsigned_request_to_healthz_shows_nothing(client):
    assert client.get("/healthz", headers={"X-Postrider-Probe": "forged"}).json() == {"status": "ok"}


def test_an_installation_without_a_provider_is_sound(installation):
    installation.settings.OIDC_ISSUER = installation.settings.OIDC_ROLES_FILE = ""
    verdicts = {name: one.verdict for name, one in diagnose().items() if name.startswith("identity_")}
    assert {*verdicts.values()} == {Verdict.SKIPPED}
