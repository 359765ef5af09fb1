"""TLS reports by real transports and servers on loopback: made once a day, signed, sent by email or posted.

Time passes by moving the times of the rows.
"""

import gzip
import json
import re
import ssl
import threading
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from email import message_from_bytes
from email.message import Message
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import dkim
import pytest
import trustme
from django.db.models import F
from django.db.models.functions import Now
from django.test import Client

from config.celery import SCHEDULE
from console.system_mail.models import SystemMail, SystemMailKind, TlsReport
from console.system_mail.sending import SystemMailQueueWork
from console.system_mail.tls_reports import posting, runs
from console.system_mail.tls_reports.message import find_report_key, report_key_record
from console.system_mail.tls_reports.runs import send_due, send_tls_reports, start_reports
from core.counters.counters import add, fold
from core.counters.models import DailyCounter
from core.delivery.bounces.replies import (
    DeliveryOutcome,
    DeliveryStatus,
    Reply,
    SessionTls,
    TlsPolicyKind,
    TlsResult,
)
from core.lib.worker.processor import QueueProcessor
from core.workspaces.models import User
from domains.models import Domain
from emails.models import MtaStsPolicy
from emails.sending.transports import configured_transport
from emails.tls_policies.report_counts import report_changes
from tests.conftest import make_account, make_domain
from tests.console.dashboard.conftest import shown_text, signed_in
from tests.console.system_mail.test_sending import ScriptedTransport
from tests.core.lib.nameserver import NameServer
from tests.sending_process import MailHost
from tests.threads import run_concurrently

pytestmark = pytest.mark.django_db(transaction=True)

SENDER = "service.example"
NONE, STS, DANE = TlsPolicyKind
AUTHORITY = trustme.CA()
SUCCESS = TlsResult.SUCCESS


@pytest.fixture
def dns(settings):
    with NameServer() as server:
        settings.DNS_SERVERS = [server.address]
        yield server


@pytest.fixture(autouse=True)
def _reports(settings):
    settings.TLSRPT_DOMAIN, settings.DELIVERY_TRANSPORT = SENDER, "direct"
    settings.DELIVERY_ALLOW_PRIVATE_NETWORKS = True
    make_domain(make_account("alice").workspace, SENDER)
    Domain.objects.update(status="verified")


@pytest.fixture
def staff():
    return signed_in(User.objects.create_superuser("staff@postrider.example", "correct horse battery"))


@pytest.fixture
def mail_host(settings, dns):
    host = MailHost()
    host.start()
    host.connections = 0
    settings.DIRECT_SMTP_PORT = host.port
    dns.put("reports.example", {"MX": ["10 mx.reports.example."]})
    dns.put("mx.reports.example", {"A": ["127.0.0.1"]})
    yield host
    host.stop()


class Collector(BaseHTTPRequestHandler):
    """A collector of reports, which keeps the requests. status: of its replies."""

    requests: list[tuple[str, str, bytes]]
    status: int

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append((self.path, self.headers["Content-Type"], body))
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.send_header("Location", "https://127.0.0.1/elsewhere")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def collector(monkeypatch, status=200):
    """Run a collector with a certificate that the process trusts; yield it and its URL."""
    handler = type("OneCollector", (Collector,), {"requests": [], "status": status})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    serving, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    AUTHORITY.issue_cert("127.0.0.1").configure_cert(serving)
    AUTHORITY.configure_trust(trusting)
    monkeypatch.setattr(posting, "verified_tls", lambda: trusting)
    server.socket = serving.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield handler, f"https://127.0.0.1:{server.server_port}/v1/tls"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def yesterday() -> date:
    return datetime.now(UTC).date() - timedelta(days=1)


def ask(domain="example.com", report_to="mailto:tls@reports.example", **fields):
    values = {"mx": [], "max_age": 0, "checked_at": datetime.now(UTC), **fields}
    MtaStsPolicy.objects.create(domain=domain, report_to=report_to, **values)


def count(policy=STS, result=SUCCESS, *, domain="example.com", sessions=1, days=1):
    """Count sessions of a day, as outcomes do."""
    tls = SessionTls("TLSv1.3", policy, verified=True, result=result, domain=domain)
    outcome = DeliveryOutcome(DeliveryStatus.DELIVERED, Reply(250, "Ok"), tls=tls)
    for _ in range(sessions):
        add(report_changes(outcome, now=datetime.now(UTC) - timedelta(days=days)))


def make_due():
    TlsReport.objects.filter(due_at__isnull=False).update(due_at=Now())


def run_day():
    """Make the reports, and send those that are due by now: all of them."""
    start_reports()
    make_due()
    send_due()


def send():
    """Send system email, as a worker does."""
    SystemMail.objects.update(due_at=Now())
    QueueProcessor(SystemMailQueueWork(configured_transport())).run()


def report() -> TlsReport:
    return TlsReport.objects.with_state().get()


def read_report(source: bytes) -> tuple[Message, dict]:
    """Return the message and the report in it, as a receiver reads them."""
    message = message_from_bytes(source, policy=default)
    _, attached = message.iter_parts()
    assert attached.get_content_type() == "application/tlsrpt+gzip"
    return message, json.loads(gzip.decompress(attached.get_payload(decode=True)))


class TestContent:
    def test_has_the_fields_of_rfc_8460(self):
        ask(
            mode="testing",
            mx=["mx.example.com", "*.example.com"],
            max_age=86_400,
            tlsa=["_25._tcp.mx. IN TLSA 3 0 1 00"],
        )
        count(sessions=5)
        count(STS, TlsResult.NO_STARTTLS, sessions=2)
        count(STS, TlsResult.MX_MISMATCH)
        count(DANE, TlsResult.TLSA_MISMATCH, sessions=3)
        count(NONE)
        start_reports()
        content, day = report().content, yesterday().isoformat()
        assert content == {
            "organization-name": "Postrider",
            "date-range": {"start-datetime": f"{day}T00:00:00Z", "end-datetime": f"{day}T23:59:59Z"},
            "contact-info": f"postmaster@{SENDER}",
            "report-id": f"{day}.example.com@{SENDER}",
            "policies": [
                {
                    "policy": {
                        "policy-type": "tlsa",
                        "policy-domain": "example.com",
                        "policy-string": ["_25._tcp.mx. IN TLSA 3 0 1 00"],
                    },
                    "summary": {"total-successful-session-count": 0, "total-failure-session-count": 3},
                    "failure-details": [
                        {
                            "result-type": "certificate-not-trusted",
                            "failed-session-count": 3,
                            "failure-reason-code": "tlsa-mismatch",
                        }
                    ],
                },
                {
                    "policy": {"policy-type": "no-policy-found", "policy-domain": "example.com"},
                    "summary": {"total-successful-session-count": 1, "total-failure-session-count": 0},
                    "failure-details": [],
                },
                {
                    "policy": {
                        "policy-type": "sts",
                        "policy-domain": "example.com",
                        "policy-string": [
                            "version: STSv1",
                            "mode: testing",
                            "mx: mx.example.com",
                            "mx: *.example.com",
                            "max_age: 86400",
                        ],
                        "mx-host": ["mx.example.com", "*.example.com"],
                    },
                    "summary": {"total-successful-session-count": 5, "total-failure-session-count": 3},
                    "failure-details": [
                        {"result-type": "starttls-not-supported", "failed-session-count": 2},
                        {
                            "result-type": "validation-failure",
                            "failed-session-count": 1,
                            "failure-reason-code": "mx-mismatch",
                        },
                    ],
                },
            ],
        }
        assert (report().successes, report().failures) == (6, 6)


class TestDay:
    def test_is_reported_once_within_four_hours(self):
        ask()
        count(sessions=3)
        count(days=0)
        run_concurrently(lambda _: start_reports(), range(2))
        start_reports()
        found = report()
        midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        assert (found.day, found.successes, found.state) == (yesterday(), 3, "waiting")
        assert midnight <= found.due_at <= max(midnight + timedelta(hours=4), datetime.now(UTC))
        assert found.ends_at == found.due_at + timedelta(hours=24)

    def test_leaves_no_counts_but_those_of_today(self):
        ask()
        for days in (0, 1, 2):
            count(days=days)
        fold()
        start_reports()
        assert [*DailyCounter.objects.values_list("day", flat=True)] == [datetime.now(UTC).date()]

    def test_without_sessions_or_without_a_record_has_no_report(self):
        ask()
        count(days=2)
        count(domain="example.org")
        count(domain="example.net", result=TlsResult.NO_STARTTLS)
        ask("example.net", report_to="")
        start_reports()
        assert not TlsReport.objects.exists()

    def test_has_no_report_to_own_receiving_domains(self, settings):
        settings.RECEIVING_DOMAIN = "in.service.example"
        for domain in ("in.service.example", "example.com"):
            ask(domain)
            count(domain=domain)
        start_reports()
        assert report().domain == "example.com"

    def test_has_a_limited_number_of_reports(self, monkeypatch, caplog):
        monkeypatch.setattr(runs, "MAX_REPORTS", 3)
        monkeypatch.setattr(runs, "DOMAINS_AT_ONCE", 2)
        for number in range(5):
            ask(f"d{number}.example")
            count(domain=f"d{number}.example")
        start_reports()
        assert [*TlsReport.objects.values_list("domain", flat=True).order_by("domain")] == [
            "d0.example", "d1.example", "d2.example",
        ]  # fmt: skip
        assert "more TLS reports than are sent in a day" in caplog.text

    def test_is_forgotten_after_a_week(self):
        ask()
        count()
        start_reports()
        TlsReport.objects.update(day=yesterday() - timedelta(days=8), due_at=None)
        send_tls_reports()
        assert not TlsReport.objects.filter(day__lt=yesterday()).exists()

    def test_is_only_reported_with_the_setting(self, settings):
        ask()
        count()
        settings.TLSRPT_DOMAIN = ""
        send_tls_reports()
        assert not TlsReport.objects.exists()
        assert "tls-reports" not in SCHEDULE


class TestEmail:
    def test_is_a_signed_report_of_the_domain(self, mail_host, dns):
        ask()
        count(sessions=2)
        count(result=TlsResult.EXPIRED)
        run_day()
        assert report().state == "waiting"
        send()
        assert (report().state, mail_host.recipients) == ("sent", ["tls@reports.example"])
        (source,) = mail_host.messages
        message, content = read_report(source)
        assert content == report().content
        assert message["Content-Type"].params["report-type"] == "tlsrpt"
        assert message.get_content_type() == "multipart/report"
        day = yesterday()
        assert (message["From"], message["To"]) == (f"postmaster@{SENDER}", "tls@reports.example")
        assert (message["TLS-Report-Domain"], message["TLS-Report-Submitter"]) == ("example.com", SENDER)
        assert message["TLS-Required"] == "No"
        subject = f"Report Domain: example.com Submitter: {SENDER} Report-ID: <{day}.example.com@{SENDER}>"
        assert message["Subject"] == subject
        start = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
        (_, attached) = message.iter_parts()
        assert attached.get_filename() == f"{SENDER}!example.com!{start}!{start + 86_399}!001.json.gz"
        key = find_report_key()
        record = report_key_record(key)
        assert re.fullmatch(r"v=DKIM1; s=tlsrpt; k=rsa; p=[A-Za-z0-9+/=]+", record)
        asked = []

        def look_up(name, timeout=5):
            asked.append(name)
            # dkimpy knows the service type email only.
            return record.replace("s=tlsrpt; ", "").encode()

        assert dkim.verify(source, dnsfunc=look_up)
        assert asked == [f"tlsrpt._domainkey.{SENDER}.".encode()]

    def test_has_the_same_bytes_at_each_attempt(self, db):
        ask()
        count()
        run_day()
        transport = ScriptedTransport(DeliveryStatus.DEFERRED, DeliveryStatus.DELIVERED)
        for _ in range(2):
            SystemMail.objects.update(due_at=Now())
            QueueProcessor(SystemMailQueueWork(transport)).run()
        assert (report().state, len(set(transport.messages))) == ("sent", 1)

    def test_is_not_tried_for_longer_than_a_day(self, settings):
        settings.DELIVERY_MAX_AGE = 30 * 86_400
        ask()
        count()
        run_day()
        for hours, state in ((23, "waiting"), (2, "failed")):
            SystemMail.objects.update(created_at=F("created_at") - timedelta(hours=hours), due_at=Now())
            QueueProcessor(SystemMailQueueWork(ScriptedTransport(DeliveryStatus.DEFERRED))).run()
            assert report().state == state

    def test_is_sent_once_by_two_workers(self):
        ask()
        count()
        start_reports()
        make_due()
        run_concurrently(lambda _: send_due(), range(2))
        assert SystemMail.objects.filter(kind=SystemMailKind.TLS_REPORT).count() == 1

    def test_is_not_sent_without_a_key_and_sent_when_there_is_one(self, mail_host):
        Domain.objects.update(status="pending")
        ask()
        count()
        run_day()
        assert not SystemMail.objects.exists()
        assert report().explanation == "No workspace has verified TLSRPT_DOMAIN, whose key signs reports."
        Domain.objects.update(status="verified")
        make_due()
        send_due()
        Domain.objects.update(status="pending")
        send()
        assert (report().state, report().explanation) == ("failed", "TLSRPT_DOMAIN has no DKIM key.")
        assert mail_host.recipients == []


class TestRequest:
    def test_has_the_file(self, monkeypatch):
        with collector(monkeypatch) as (host, url):
            ask(report_to=url)
            count()
            run_day()
        ((path, content_type, body),) = host.requests
        assert (path, content_type) == ("/v1/tls", "application/tlsrpt+gzip")
        assert json.loads(gzip.decompress(body)) == report().content
        assert (report().state, report().due_at) == ("sent", None)

    @pytest.mark.parametrize("status", [302, 404, 503])
    def test_is_repeated_hourly_for_a_day(self, monkeypatch, status):
        with collector(monkeypatch, status) as (host, url):
            ask(report_to=url)
            count()
            run_day()
            send_due()
            assert (len(host.requests), report().state) == (1, "waiting")
            assert report().error == f"The host answered {status}."
            assert timedelta(minutes=59) < report().due_at - datetime.now(UTC) <= timedelta(hours=1)
            TlsReport.objects.update(ends_at=Now() + timedelta(minutes=30))
            make_due()
            send_due()
            assert (len(host.requests), report().state) == (2, "failed")
            make_due()
            send_due()
            assert len(host.requests) == 2

    def test_is_not_made_after_its_time(self, monkeypatch):
        with collector(monkeypatch) as (host, url):
            ask(report_to=url)
            count()
            start_reports()
            TlsReport.objects.update(ends_at=Now())
            make_due()
            send_due()
            assert (host.requests, report().state) == ([], "failed")

    def test_does_not_go_to_private_addresses(self, monkeypatch, settings):
        settings.DELIVERY_ALLOW_PRIVATE_NETWORKS = False
        with collector(monkeypatch) as (host, url):
            ask(report_to=url)
            count()
            run_day()
            assert (host.requests, report().state) == ([], "waiting")
            assert "Refused" in report().error


class TestShown:
    def test_to_the_staff_and_to_prometheus(self, staff):
        ask()
        count(sessions=1200)
        count(result=TlsResult.NO_STARTTLS, sessions=3)
        start_reports()
        page = shown_text(staff.get("/admin/receivers/"))
        assert "TLS reports to recipient domains" in page
        assert f"example.com {yesterday()} 1,200 3 starttls-not-supported: 3 waiting mailto:tls@reports.example" in page
        assert "TLS reports" not in shown_text(staff.get("/admin/receivers/", {"receiver": "other"}))
        lines = Client().get("/metrics").content.decode().splitlines()
        assert 'postrider_tls_reports{state="waiting"} 1.0' in lines

    def test_to_nobody_who_sends_none(self, staff, settings):
        settings.TLSRPT_DOMAIN = ""
        assert "TLS reports" not in shown_text(staff.get("/admin/receivers/"))
        assert "postrider_tls_reports" not in Client().get("/metrics").content.decode()
