"""Reports about domains: their addresses, limits, states, and deletion."""

import asyncio
import gzip
import smtplib
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from config.doctor.diagnosis import DoctorOptions
from config.doctor.mail import check_report_domain
from console.provisioning.erasure import erase_workspace
from core.erasing.steps import ErasureScope
from core.lib.network.resolver import Resolver
from domains.models import DmarcDay, DmarcRow, Domain, DomainReport, ReceivingDomain, TlsRow
from domains.receiving.services import expected_mx
from domains.record_checks.dmarc import add_report_address
from domains.record_checks.receiving import check_receiving
from domains.record_checks.results import RecordCheck, RecordStatus, VerificationResult, findings_of, to_json
from domains.reports import queue, storing
from domains.reports.addresses import Kind, ReportAddress, read_report_address, report_address, report_token
from domains.reports.deletion import delete_expired_reports
from domains.reports.queue import oldest_unread_seconds, read_due_reports
from domains.reports.storing import Admission, ReportLimit, admit_report, store_report
from domains.services import delete_domain
from interfaces.inbound.queue import erase_reports
from tests.conftest import Api, make_domain, make_key
from tests.core.lib.nameserver import NameServer
from tests.domains.reports.builders import DAY, dmarc_report, dmarc_row, message, tls_report, yesterday
from tests.interfaces.inbound.fixtures import run_inbound
from tests.rows import each

pytestmark = pytest.mark.django_db

PEER = "198.51.100.7"
TLS_JSON = "application/tlsrpt+json"


@pytest.fixture(autouse=True)
def _public_name(settings):
    settings.RETURN_PATH_DOMAIN = "bounce.service.example"


@pytest.fixture
def domain(alice) -> Domain:
    return make_domain(alice.workspace, "alice.example")


@pytest.fixture
def bobs_domain(bob) -> Domain:
    return make_domain(bob.workspace, "bob.example")


def store(domain: Domain, source: bytes, *, kind: Kind = Kind.DMARC, peer: str = PEER) -> DomainReport:
    assert store_report(ReportAddress(domain.id, kind), source, peer=peer) is Admission.ACCEPTED
    return DomainReport.objects.latest("received_at", "id")


def read(domain: Domain, document: bytes, **options) -> DomainReport:
    """Store a report and read it."""
    report = store(domain, message(document), **options)
    read_due_reports()
    report.refresh_from_db()
    return report


def delete_expired() -> None:
    for _ in delete_expired_reports():
        pass


def test_addresses_are_read_in_any_case(domain):
    for kind in Kind:
        address = report_address(domain, kind)
        assert address.endswith("@bounce.service.example")
        assert len(address.partition("@")[0]) <= 64
        assert read_report_address(address.upper()) == ReportAddress(domain.id, kind)


@each(("address",), [
    ("d-@bounce.service.example",), ("d-aaaa@bounce.service.example",), (f"d-{'é' * 26}@bounce.service.example",),
    (f"x-{'a' * 26}@bounce.service.example",), (f"d-{'1' * 26}@bounce.service.example",), ("d-" + "a" * 26,),
    (f"d-{'a' * 26}@alice.example",),
])  # fmt: skip
def test_other_addresses_are_not_read(address):
    assert read_report_address(address) is None


def test_a_report_is_counted_with_its_rows(domain):
    report = read(domain, dmarc_report(dmarc_row(count=5), dmarc_row("192.0.2.2", dkim="fail")))
    assert (report.state, report.reporter, report.reporter_domain, report.error) == (
        "read", "google.com", "google.com", ""
    )  # fmt: skip
    rows = DmarcRow.objects.order_by("-count")
    assert [(row.source_ip, row.count, row.is_aligned, row.domain_id, row.day) for row in rows] == [
        ("192.0.2.1", 5, True, domain.id, report.begin_at.date()),
        ("192.0.2.2", 3, False, domain.id, report.begin_at.date()),
    ]
    assert rows[0].dkim_results == [{"domain": "alice.example", "selector": "pr1", "result": "pass"}]
    assert (report.policy["p"], [row.whose for row in rows]) == ("none", ["forwarded", "unknown"])


def test_a_tls_report_is_counted_with_its_rows(domain):
    report = read(domain, tls_report(), kind=Kind.TLS)
    assert (report.state, report.kind, report.report_id) == ("read", "tls", "t1")
    assert [(row.result_type, row.successful, row.failed, row.mx_hosts) for row in TlsRow.objects.order_by("id")] == [
        ("", 40, 2, ["mx.alice.example"]), ("certificate-expired", 0, 2, ["mx.alice.example"])
    ]  # fmt: skip


@each(("name", "state"), [
    ("alice.example", "read"), ("ALICE.example.", "read"), ("mail.alice.example", "read"), ("bob.example", "foreign"),
    ("notalice.example", "foreign"), ("example", "foreign"), ("alice.example.bob.example", "foreign"),
    ("..", "foreign"),
])  # fmt: skip
def test_only_reports_about_the_domain_are_counted(domain, bobs_domain, name, state):
    report = read(domain, dmarc_report(domain=name))
    assert report.state == state
    assert DmarcRow.objects.exists() == (state == "read")


def test_a_tls_report_about_another_domain_is_foreign(domain):
    report = read(domain, tls_report("bob.example"), kind=Kind.TLS)
    assert (report.state, TlsRow.objects.count()) == ("foreign", 0)


def test_a_repeated_report_changes_nothing(domain):
    rows = [dmarc_row(), dmarc_row("192.0.2.2")]
    read(domain, dmarc_report(*rows))
    again = read(domain, gzip.compress(dmarc_report(*reversed(rows))))
    assert (again.state, bytes(again.source)) == ("repeated", b"")
    assert DmarcRow.objects.count() == 2


def test_a_report_with_other_rows_is_kept_as_a_conflict(domain, bobs_domain):
    read(domain, dmarc_report())
    other = read(domain, dmarc_report(dmarc_row(count=999)))
    assert (other.state, DmarcRow.objects.get().count) == ("conflict", 3)
    assert bytes(other.source)
    assert read(domain, dmarc_report(reporter="yahoo.com")).state == "read"
    assert read(bobs_domain, dmarc_report(domain="bob.example")).state == "read"


def test_an_unreadable_report_says_why(domain):
    report = read(domain, b"<feedback>")
    assert (report.state, report.error.partition(":")[0]) == ("unreadable", "The XML is malformed")
    assert read(domain, b"Hello").state == "unreadable"


def test_a_bomb_is_refused_and_the_next_report_is_read(domain):
    bomb = store(domain, message(gzip.compress(bytes(30 * 1024 * 1024))))
    report = read(domain, dmarc_report())
    bomb.refresh_from_db()
    assert (bomb.state, report.state) == ("refused", "read")


@each(("dates",), [((0, 86_399),), ((2 * 10**9 * 2, 4 * 10**9 + 1),), ((yesterday()[1], yesterday()[0]),)])
def test_a_range_far_from_today_is_refused(domain, dates):
    assert read(domain, dmarc_report(dates=dates)).state == "refused"


def test_the_rows_of_a_day_are_limited(domain, monkeypatch):
    monkeypatch.setattr(queue, "MAX_DAILY_ROWS", 3)
    assert read(domain, dmarc_report(dmarc_row() * 2)).state == "read"
    report = read(domain, dmarc_report(dmarc_row() * 2, report_id="r2"))
    assert (report.state, DmarcRow.objects.count()) == ("refused", 2)


def test_a_report_that_ends_its_process_is_given_up(domain):
    report = store(domain, message(dmarc_report()))
    DomainReport.objects.filter(id=report.id).update(attempts=queue.MAX_ATTEMPTS)
    read_due_reports()
    report.refresh_from_db()
    assert (report.state, report.error) == ("unreadable", queue.ENDED_PROCESS)


def test_an_error_of_the_reader_leaves_the_report_on_the_queue(domain, monkeypatch, caplog):
    monkeypatch.setattr(queue, "read_report", lambda _: 1 / 0)
    report = read(domain, dmarc_report())
    assert (report.state, report.attempts, report.read_at) == ("waiting", 1, None)
    assert "a report could not be read" in caplog.text
    monkeypatch.undo()
    DomainReport.objects.update(due_at=Now(), received_at=Now() - timedelta(seconds=90))
    assert oldest_unread_seconds() >= 80
    read_due_reports()
    report.refresh_from_db()
    assert (report.state, oldest_unread_seconds()) == ("read", 0)


def test_limits_of_a_network_and_a_domain(domain, bobs_domain, monkeypatch):
    monkeypatch.setattr(storing, "OF_DOMAIN", ReportLimit(3, 10_000))
    monkeypatch.setattr(storing, "OF_NETWORK", ReportLimit(2, 10_000))
    about = ReportAddress(domain.id, Kind.DMARC)
    for host in ("198.51.100.1", "198.51.100.2"):
        store(domain, b"x", peer=host)
    assert admit_report(about, peer=PEER) is Admission.LIMITED
    assert admit_report(about, peer="203.0.113.9") is Admission.ACCEPTED
    assert admit_report(about, peer="203.0.113.9", size_bytes=10_000) is Admission.LIMITED
    store(domain, b"x", peer="203.0.113.9")
    assert admit_report(about, peer="192.0.2.1") is Admission.LIMITED
    assert admit_report(ReportAddress(bobs_domain.id, Kind.DMARC), peer=PEER) is Admission.ACCEPTED
    DomainReport.objects.update(received_at=Now() - timedelta(hours=25))
    assert admit_report(about, peer=PEER) is Admission.ACCEPTED


def test_a_deleted_workspace_gets_no_reports(domain):
    type(domain.workspace).objects.filter(id=domain.workspace_id).update(deletes_at=Now())
    assert admit_report(ReportAddress(domain.id, Kind.DMARC), peer=PEER) is Admission.UNKNOWN


@pytest.mark.django_db(transaction=True)
def test_the_inbound_server_stores_reports_of_ten_mebibytes(domain):
    address = report_address(domain, Kind.DMARC)
    large = message(bytes(6_000_000)).replace(b"\n", b"\r\n")
    with run_inbound() as port, smtplib.SMTP("127.0.0.1", port.number) as client:
        client.ehlo("mx.google.com")
        client.mail("noreply@google.com")
        code, _ = client.rcpt(address.replace("d-", "d-7"))
        assert code == 550
        assert client.rcpt(address.upper())[0] == 250
        assert client.data(large)[0] == 250
        client.mail("noreply@google.com", [f"size={11 * 1024 * 1024}"])
        assert client.rcpt(address)[0] == 552
        client.rset()
        DomainReport.objects.bulk_create(
            DomainReport(domain=domain, kind="dmarc", source=b"", size=0, network="127.0.0.0/24") for _ in range(50)
        )
        client.mail("noreply@google.com")
        assert client.rcpt(address)[0] == 452
    report = DomainReport.objects.get(size__gt=0)
    assert (report.sender, report.network, report.size > 8_000_000) == ("noreply@google.com", "127.0.0.0/24", True)


@each(("body", "content_type", "status"), [
    (tls_report(), TLS_JSON, 201), (gzip.compress(tls_report()), "application/tlsrpt+gzip", 201), (b"{", TLS_JSON, 201),
    (tls_report(), "application/json", 415), (b"{" * (1024 * 1024 + 1), TLS_JSON, 413),
])  # fmt: skip
def test_a_tls_report_can_be_posted(client, domain, body, content_type, status):
    path = f"/reports/tls/{report_token(domain)}"
    response = client.post(path, body, content_type=content_type)
    assert (response.status_code, response.content) == (status, b"")
    assert DomainReport.objects.count() == (status == 201)
    assert client.get(path).status_code == 405


def test_posted_reports_are_limited_by_network(client, domain):
    def post(token: str, *, peer: str = "203.0.113.77") -> int:
        path = f"/reports/tls/{token}"
        return client.post(path, b"{}", content_type="text/plain", REMOTE_ADDR=peer).status_code

    token = report_token(domain)
    assert [post("unknown"), post("1" * 26)] == [404, 404]
    statuses = [post(token) for _ in range(60)]
    assert (statuses[:58], statuses[-1]) == ([415] * 58, 429)
    assert post(token, peer="203.0.113.78") == 415


def test_a_domain_that_does_not_exist_gets_no_posted_report(client, domain):
    token = report_token(domain)
    delete_domain(domain)
    response = client.post(f"/reports/tls/{token}", b"{}", content_type=TLS_JSON, REMOTE_ADDR="203.0.113.79")
    assert (response.status_code, DomainReport.objects.count()) == (404, 0)


def records_of(domain: Domain) -> dict[str, dict]:
    shown = Api(make_key(domain.workspace)).get(f"/domains/{domain.id}").json()
    return {record["record"]: record for record in shown["records"]}


def test_records_show_the_addresses(domain, settings):
    settings.DMARC_RUA = ["reports@service.example"]
    token = report_token(domain)
    records = records_of(domain)
    addresses = f"mailto:d-{token}@bounce.service.example,mailto:reports@service.example"
    assert records["DMARC"]["value"] == f"v=DMARC1; p=none; rua={addresses};"
    assert "TLSReports" not in records
    ReceivingDomain.objects.create(workspace=domain.workspace, domain=domain, name=domain.name)
    record = records_of(domain)["TLSReports"]
    value = f"v=TLSRPTv1; rua=mailto:t-{token}@bounce.service.example,{settings.PUBLIC_URL}/reports/tls/{token}"
    assert (record["type"], record["fqdn"], record["value"]) == ("TXT", "_smtp._tls.alice.example", value)
    assert (record["required"], record["status"]) == (False, "pending")


@each(("found", "status", "value"), [
    ("v=TLSRPTv1; rua=mailto:T-{token}@bounce.service.example", "verified", "v=TLSRPTv1; rua=mailto:t-{token}@"),
    ("v=TLSRPTv1; rua=mailto:me@a.example;", "pending", "v=TLSRPTv1; rua=mailto:me@a.example,mailto:t-{token}@"),
])  # fmt: skip
def test_a_published_record_of_tls_reports_is_kept_and_extended(domain, found, status, value):
    token = report_token(domain)
    receiving = ReceivingDomain.objects.create(workspace=domain.workspace, domain=domain, name=domain.name)
    domain.refresh_from_db()
    with NameServer({
        domain.name: {"MX": ["10 mx.demo.example."]},
        f"_smtp._tls.{domain.name}": {"TXT": [f'"{found.format(token=token)}"']},
    }) as server:  # fmt: skip
        expected = expected_mx(domain)
        assert expected
        check = asyncio.run(check_receiving(expected, Resolver([server.address])))
    ReceivingDomain.objects.filter(id=receiving.id).update(tls_reporting=check.tls_reporting)
    assert "tls_reporting" not in to_json(check)
    record = records_of(domain)["TLSReports"]
    assert (record["status"], record["found"]) == (status, found.format(token=token))
    assert record["value"].startswith(value.format(token=token))


@each(("policy", "extended"), [
    ("v=DMARC1; p=reject", "v=DMARC1; p=reject; rua=mailto:d@b.example;"),
    ("v=DMARC1; RUA = mailto:me@a.example; pct=1", "v=DMARC1; RUA = mailto:d@b.example,mailto:me@a.example; pct=1"),
    ("v=DMARC1; p=none; rua=mailto:D@B.example;", "v=DMARC1; p=none; rua=mailto:D@B.example;"),
])  # fmt: skip
def test_a_published_policy_gets_the_address(policy, extended):
    assert add_report_address(policy, "d@b.example") == extended


def test_a_checked_policy_is_shown_with_the_address(domain):
    ok = RecordCheck(RecordStatus.VALID)
    policy = replace(ok, found="v=DMARC1; p=reject", value="v=DMARC1; p=reject")
    result = VerificationResult({"pr1": ok}, ok, policy, ok, ok)
    Domain.objects.filter(id=domain.id).update(**findings_of(result))
    record = records_of(domain)["DMARC"]
    address = report_address(domain, Kind.DMARC)
    assert (record["status"], record["found"]) == ("verified", "v=DMARC1; p=reject")
    assert record["value"] == f"v=DMARC1; p=reject; rua=mailto:{address};"


def test_an_installation_without_a_public_name_shows_no_addresses(domain, settings):
    settings.RETURN_PATH_DOMAIN = "bounce.localhost"
    ReceivingDomain.objects.create(workspace=domain.workspace, domain=domain, name=domain.name)
    records = records_of(domain)
    assert records["DMARC"]["value"] == "v=DMARC1; p=none;"
    assert "TLSReports" not in records


@each(("zone", "verdict"), [
    ({"reports.example._report._dmarc.bounce.service.example": {"TXT": ['"v=DMARC1"']}}, "ok"),
    ({"reports.example._report._dmarc.bounce.service.example": {"TXT": ['"v=spf1"']}}, "warning"), ({}, "warning"),
])  # fmt: skip
def test_the_doctor_checks_the_record_of_the_operator(settings, zone, verdict):
    with NameServer(zone) as server:
        settings.DNS_SERVERS = [server.address]
        diagnosis = check_report_domain(DoctorOptions())
    assert diagnosis.verdict == verdict


def test_bytes_are_kept_for_thirty_days_and_rows_for_four_hundred(domain):
    report = read(domain, dmarc_report(dmarc_row(count=5), dmarc_row(dkim="fail", count=2)))
    broken = read(domain, b"<feedback>")
    DomainReport.objects.update(received_at=Now() - timedelta(days=29))
    delete_expired()
    report.refresh_from_db()
    assert bytes(report.source)
    assert DomainReport.objects.filter(id=broken.id).exists()
    DomainReport.objects.update(received_at=Now() - timedelta(days=31))
    delete_expired()
    report.refresh_from_db()
    assert (report.source, DmarcRow.objects.count()) == (None, 2)
    assert not DomainReport.objects.filter(id=broken.id).exists()
    DomainReport.objects.update(received_at=Now() - timedelta(days=401))
    delete_expired()
    assert not DomainReport.objects.exists()
    assert not DmarcRow.objects.exists()
    days = DmarcDay.objects.order_by("whose")
    assert [(day.day, day.organization, day.whose, day.messages, day.aligned) for day in days] == [
        (report.begin_at.date(), "google", "forwarded", 5, 5), (report.begin_at.date(), "google", "unknown", 2, 0)
    ]  # fmt: skip


def test_day_sums_of_several_reports_add_up(domain):
    for number in range(2):
        read(domain, dmarc_report(dmarc_row(count=5), report_id=str(number)))
        DomainReport.objects.update(received_at=Now() - 401 * DAY)
        delete_expired()
    assert DmarcDay.objects.get().messages == 10


def test_reports_of_a_deleted_domain_are_deleted(domain, bobs_domain):
    read(domain, dmarc_report())
    read(domain, tls_report(), kind=Kind.TLS)
    kept = read(bobs_domain, dmarc_report(domain="bob.example"))
    waiting = store(domain, message(dmarc_report(report_id="r2")))
    delete_domain(domain)
    read_due_reports()
    assert DomainReport.objects.get(id=waiting.id).state == "waiting"
    delete_expired()
    assert list(DomainReport.objects.all()) == [kept]
    assert (DmarcRow.objects.count(), TlsRow.objects.count(), DmarcDay.objects.count()) == (1, 0, 0)


def test_reports_of_a_workspace_are_deleted(domain, bobs_domain):
    read(domain, dmarc_report())
    kept = read(bobs_domain, dmarc_report(domain="bob.example"))
    type(domain.workspace).objects.filter(id=domain.workspace_id).update(deletes_at=Now())
    for _ in erase_workspace(domain.workspace_id, DAY):
        pass
    assert list(DomainReport.objects.all()) == [kept]


def test_erasure_removes_the_address_of_a_sender(domain, bobs_domain):
    for one in (domain, bobs_domain):
        report = store(one, message(dmarc_report(domain=one.name)))
        DomainReport.objects.filter(id=report.id).update(sender="Ada@reporter.example")
    read_due_reports()
    result = erase_reports(ErasureScope(domain.workspace_id, ("ada@reporter.example",)), None)
    assert result.counts_of("ada@reporter.example") == {"reports": 1}
    report = DomainReport.objects.get(domain=domain)
    assert (report.sender, report.source, report.dmarc_rows.count()) == ("", None, 1)
    assert DomainReport.objects.get(domain=bobs_domain).sender == "Ada@reporter.example"
