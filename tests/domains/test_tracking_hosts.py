"""Tracking hosts of sending domains: choosing one, its records, and its checks (docs/decisions/0205)."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import trustme
from django.db.models.functions import Now

from core.workspaces.models import AuditEntry
from domains.check_queue.claims import claim_due_checks, record_check
from domains.models import Domain, TrackingHost
from domains.record_checks import tracking_host
from domains.record_checks.results import HostCheck, RecordCheck, RecordStatus, VerificationResult
from domains.signing_identities import load_identities
from domains.tasks import expire
from domains.tracking_hosts import MAX_NEW_NAMES_PER_MINUTE, proofs
from emails.models import Email
from tests.conftest import Account, Api, code_of, field_codes, mail
from tests.core.lib.nameserver import SERVFAIL
from tests.domains.conftest import NAME, Owner, Zone
from tests.domains.proof_server import ProofServer, trusted
from tests.rows import each

pytestmark = pytest.mark.django_db

HOST = f"links.{NAME}"
TARGET = "mail.service.example"


@pytest.fixture
def service(settings: Any, dns: Any, monkeypatch: Any, tmp_path: Any) -> Iterator[ProofServer]:
    """This installation, which answers at TARGET."""
    authority = trustme.CA()
    with ProofServer(authority, HOST) as server, trusted(authority, monkeypatch, tmp_path):
        settings.PUBLIC_URL = f"https://{TARGET}:{server.port}"
        settings.TRACKING_HOST = TARGET
        settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = True
        server.body = "\n".join(proofs())
        dns.put(TARGET, {"A": ["127.0.0.1"]})
        yield server


@pytest.fixture
def owner(service: ProofServer, api: Api, zone: Zone) -> Owner:
    """The owner of a verified domain."""
    owner = Owner(api, zone, NAME).publish()
    assert owner.verify()["status"] == "verified"
    return owner


def choose(owner: Owner, subdomain: str | None = "links") -> Any:
    response = owner.api.patch(owner.path, {"tracking": subdomain and {"subdomain": subdomain}})
    if response.status_code == 200:
        owner.body = response.json()
    return response


def links_url(owner: Owner) -> str:
    """Return the start of links in emails, when the web processes know a proven host."""
    TrackingHost.objects.exclude(proven_at=None).update(proven_at=Now() - timedelta(minutes=2))
    domain = Domain.objects.get(id=owner.body["id"])
    pair = (domain.workspace_id, domain.name)
    return load_identities([pair])[pair].links_url


@pytest.fixture
def active(owner: Owner) -> Owner:
    """The owner of a domain with an active host."""
    choose(owner)
    owner.publish("Tracking")
    assert owner.verify()["tracking"] == {"host": HOST, "status": "active", "error": None}
    return owner


def test_a_domain_has_no_host_until_it_chooses_one(owner: Owner):
    assert owner.body["tracking"] is None
    assert {record["record"] for record in owner.body["records"]} == {"DKIM", "SPF", "DMARC", "ReturnPath"}
    assert links_url(owner) == ""


def test_a_host_has_a_record_that_is_not_required(owner: Owner):
    assert choose(owner).status_code == 200
    assert owner.body["tracking"] == {"host": HOST, "status": "pending", "error": None}
    record = owner.record("Tracking")
    assert (record["type"], record["name"], record["fqdn"], record["value"], record["required"], record["status"]) == (
        "CNAME", "links", HOST, TARGET, False, "pending",
    )  # fmt: skip
    assert owner.body["status"] == "verified"
    assert links_url(owner) == ""


def test_a_host_that_answers_is_used(active: Owner, service: ProofServer):
    assert active.record("Tracking")["status"] == "verified"
    assert links_url(active) == f"https://{HOST}:{service.port}"
    assert service.requests == [(f"{HOST}:{service.port}", "/.well-known/postrider")]


def test_the_addresses_of_the_service_are_as_good_as_a_cname(owner: Owner, zone: Zone):
    choose(owner)
    zone.set(HOST, "A", "127.0.0.1")
    assert owner.verify()["tracking"]["status"] == "active"


@pytest.mark.parametrize(
    ("kind", "value", "status", "error"),
    [
        ("A", "192.0.2.7", "failed", "address record (192.0.2.7)"),
        ("CNAME", "elsewhere.example.", "failed", "The CNAME points to elsewhere.example."),
        ("TXT", "x", "pending", "No CNAME record found"),
    ],
)
def test_other_records_say_what_is_wrong(owner: Owner, zone: Zone, service, kind, value, status, error):
    choose(owner)
    zone.set(HOST, kind, value)
    tracking = owner.verify()["tracking"]
    assert (tracking["status"], error in tracking["error"]) == (status, True), tracking
    assert links_url(owner) == ""
    assert service.requests == []


def test_a_cname_at_the_wrong_name_is_recognized(owner: Owner, zone: Zone):
    choose(owner)
    zone.set(f"{HOST}.{NAME}", "CNAME", f"{TARGET}.")
    assert f"{HOST}.{NAME}" in owner.verify()["tracking"]["error"]


def another_service(service: ProofServer) -> None:
    service.body = "hello"


def redirect(service: ProofServer) -> None:
    service.status = 302


def another_certificate(service: ProofServer) -> None:
    service.use_certificate(trustme.CA(), HOST)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (another_service, "Another service answers"),
        (redirect, "Another service answers"),
        (another_certificate, "no valid certificate"),
    ],
)
def test_the_first_refutation_returns_new_emails_to_the_service(active: Owner, service, change: Callable, error):
    change(service)
    tracking = active.verify()["tracking"]
    assert (tracking["status"], error in tracking["error"]) == ("failed", True), tracking
    assert links_url(active) == ""
    assert active.body["status"] == "verified"
    assert Domain.objects.filter(name=NAME, check_due_at__lt=Now() + timedelta(minutes=2)).exists()


def test_a_removed_cname_returns_new_emails_to_the_service_and_a_new_one_back(active: Owner, zone: Zone):
    cname = zone.server.zones.pop(HOST)
    assert active.verify()["tracking"]["status"] == "failed"
    assert links_url(active) == ""
    zone.server.zones[HOST] = cname
    assert active.verify()["tracking"]["status"] == "active"
    assert links_url(active).startswith(f"https://{HOST}:")


def busy(service: ProofServer, zone: Zone, monkeypatch: Any) -> None:
    service.status = 503


def stopped(service: ProofServer, zone: Zone, monkeypatch: Any) -> None:
    service.stop()


def silent(service: ProofServer, zone: Zone, monkeypatch: Any) -> None:
    monkeypatch.setattr(tracking_host, "PROOF_SECONDS", 0.000_001)


def dns_failure(service: ProofServer, zone: Zone, monkeypatch: Any) -> None:
    zone.server.zones[HOST] = SERVFAIL


def dns_failure_of_the_service(service: ProofServer, zone: Zone, monkeypatch: Any) -> None:
    zone.set(HOST, "A", "127.0.0.1")
    del zone.server.zones[HOST]["CNAME"]  # type: ignore[union-attr]
    zone.server.zones[TARGET] = SERVFAIL


@pytest.mark.parametrize("change", [busy, stopped, silent, dns_failure, dns_failure_of_the_service])
def test_a_failed_lookup_or_connection_changes_nothing(active: Owner, service, zone, monkeypatch, change: Callable):
    change(service, zone, monkeypatch)
    tracking = active.verify()["tracking"]
    assert (tracking["status"], bool(tracking["error"])) == ("active", True)
    assert links_url(active).startswith(f"https://{HOST}:")


def test_the_first_certificate_may_take_a_while(owner: Owner, service: ProofServer):
    choose(owner)
    owner.publish("Tracking")
    another_certificate(service)
    tracking = owner.verify()["tracking"]
    assert (tracking["status"], "first visit" in tracking["error"]) == ("pending", True)
    assert TrackingHost.objects.get().seen_at is not None


def test_a_private_address_is_refused(active: Owner, settings: Any):
    settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = False
    tracking = active.verify()["tracking"]
    assert (tracking["status"], "address not allowed" in tracking["error"]) == ("failed", True)


def test_a_rotation_of_app_keys_refutes_nothing(active: Owner, settings: Any):
    # The process that answers has the old keys, the one that checks has the new ones, or the other way round.
    settings.APP_KEYS = [("new", b"n" * 16 + b"e" * 16), *settings.APP_KEYS]
    assert active.verify()["tracking"]["status"] == "active"


def test_a_domain_that_is_not_verified_gets_no_host(service, api: Api, zone: Zone):
    owner = Owner(api, zone, NAME)
    choose(owner)
    owner.publish("Tracking")
    tracking = owner.verify()["tracking"]
    assert (tracking["status"], "Publish the required records" in tracking["error"]) == ("pending", True)
    owner.publish()
    assert owner.verify()["tracking"]["status"] == "active"


def test_a_check_follows_soon_while_a_host_is_not_active(owner: Owner):
    choose(owner)
    owner.verify()
    soon = Domain.objects.filter(name=NAME, check_due_at__lt=Now() + timedelta(minutes=2))
    assert soon.exists()
    owner.publish("Tracking").verify()
    owner.verify()
    assert not soon.exists()


def test_a_check_that_began_before_a_change_of_the_host_does_not_count(owner: Owner):
    choose(owner)
    former = TrackingHost.objects.get()
    (claim,) = claim_due_checks(10)
    choose(owner, "click")
    valid = RecordCheck(RecordStatus.VALID)
    result = VerificationResult(keys={}, spf=valid, dmarc=valid, return_path=valid, mail=valid)
    record_check(claim, result, HostCheck(former.id, valid, valid))
    assert list(TrackingHost.objects.values_list("name", "status")) == [(f"click.{NAME}", "pending")]


# CAA records (RFC 8659)


@pytest.mark.parametrize(
    ("records", "is_refused"),
    [
        (['0 issue "letsencrypt.org"'], False),
        (['0 issue "other.example"', '0 issue "LetsEncrypt.org; validationmethods=http-01"'], False),
        (['0 iodef "mailto:a@example.com"'], False),
        (['0 issue "other.example"'], True),
        (['0 issue ";"'], True),
    ],
)
def test_caa_records_that_refuse_the_certificate_are_reported(owner: Owner, zone: Zone, records, is_refused):
    choose(owner)
    owner.publish("Tracking")
    zone.set(NAME, "CAA", *records)
    owner.verify()
    found = [record for record in owner.body["records"] if record["record"] == "TrackingCAA"]
    assert len(found) == is_refused
    for record in found:
        assert (record["type"], record["name"], record["value"], record["required"], record["status"]) == (
            "CAA", "@", '0 issue "letsencrypt.org"', False, "failed",
        )  # fmt: skip
        assert record["found"] == records[0]


def test_caa_records_of_a_domain_above_count(owner: Owner, zone: Zone, settings: Any):
    settings.TRACKING_CA = "ca.example"
    choose(owner)
    zone.set("example.com", "CAA", '0 issue "letsencrypt.org"')
    owner.verify()
    record = owner.record("TrackingCAA")
    assert (record["name"], record["fqdn"], record["value"]) == ("example.com", "example.com", '0 issue "ca.example"')
    zone.set("example.com", "CAA", '0 issue "letsencrypt.org"', '0 issue "ca.example"')
    owner.verify()
    assert "TrackingCAA" not in {record["record"] for record in owner.body["records"]}


# Choosing a host


@each(
    ("subdomain", "code"),
    [
        ("", "blank"), ("Links", "invalid"), ("a.b", "invalid"), ("_dmarc", "invalid"), ("-a", "invalid"),
        ("a-", "invalid"), ("ä", "invalid"), ("a" * 64, "invalid"), (7, "invalid"), (None, "null"), ("a\n", "invalid"),
        ("bounce", "reserved"), ("mta-sts", "reserved"), ("pr1._domainkey", "invalid"),
    ],
)  # fmt: skip
def test_other_subdomains_are_refused(owner: Owner, subdomain, code):
    response = owner.api.patch(owner.path, {"tracking": {"subdomain": subdomain}})
    assert list(field_codes(response)) == ["tracking.subdomain"]
    assert TrackingHost.objects.count() == 0


@each("subdomain", ["a", "a" * 63, "xn--links-cua", "l1-2"])
def test_a_label_is_a_subdomain(owner: Owner, subdomain):
    assert choose(owner, subdomain).json()["tracking"]["host"] == f"{subdomain}.{NAME}"


@each("body", [{"tracking": {}}, {"tracking": {"subdomain": "links", "x": 1}}, {"tracking": "links"}])
def test_a_host_is_described_by_its_subdomain(owner: Owner, body):
    assert owner.api.patch(owner.path, body).status_code == 422


def test_a_host_that_exceeds_a_name_is_refused(service, api: Api, zone: Zone):
    owner = Owner(api, zone, ".".join(["a" * 60] * 4) + ".com")
    assert code_of(choose(owner, "l" * 40)) == (422, "tracking_unavailable")


@each(
    ("name", "value"),
    [
        ("ALLOWED_HOSTS", ["testserver", HOST]),
        ("ALLOWED_HOSTS", ["testserver", f".{NAME}"]),
        ("TRACKING_HOST", HOST),
        ("RETURN_PATH_DOMAIN", HOST),
    ],
)
def test_names_of_the_service_are_no_hosts(owner: Owner, settings: Any, name, value):
    setattr(settings, name, value)
    assert code_of(choose(owner)) == (422, "tracking_unavailable")


@each("value", ["127.0.0.1", "localhost", ""])
def test_a_service_without_a_public_name_has_no_hosts(owner: Owner, settings: Any, value):
    settings.TRACKING_HOST = value
    assert code_of(choose(owner)) == (422, "tracking_unavailable")


def test_null_removes_the_host(active: Owner):
    assert choose(active, None).json()["tracking"] is None
    assert links_url(active) == ""
    assert "Tracking" not in {record["record"] for record in active.body["records"]}


def test_repeating_a_choice_changes_nothing(active: Owner):
    assert choose(active).json()["tracking"]["status"] == "active"
    assert TrackingHost.objects.count() == 1


def test_changes_are_in_the_audit_log_once(owner: Owner):
    for subdomain in ("links", "links", None, None):
        choose(owner, subdomain)
    changes = AuditEntry.objects.filter(act=AuditEntry.Action.DOMAIN_CHANGED).order_by("created_at")
    assert list(changes.values_list("about", flat=True)) == [
        f"{NAME}: links at {HOST}", f"{NAME}: links at this service",
    ]  # fmt: skip


def test_an_internationalized_domain_has_hosts(service, api: Api, zone: Zone):
    owner = Owner(api, zone, "bücher.example")
    assert choose(owner).json()["tracking"]["host"] == "links.xn--bcher-kva.example"
    service.use_certificate(trustme.CA(), "links.xn--bcher-kva.example")
    owner.publish()
    owner.body = api.get(owner.path).json()
    owner.publish("Tracking")
    assert owner.verify()["tracking"]["status"] == "pending"


# One host belongs to one workspace


@pytest.fixture
def rival(bob: Account, bobs_api: Api, zone: Zone, active: Owner) -> Owner:
    """Bob, who controls the same domain and has its host in mind."""
    owner = Owner(bobs_api, zone, NAME)
    zone.publish(owner.record("DKIM"))
    return owner


def test_a_proven_host_is_taken(rival: Owner):
    response = choose(rival)
    assert code_of(response) == (409, "tracking_host_taken")
    assert response.json()["host"] == HOST
    assert TrackingHost.objects.count() == 1


def test_a_refused_host_leaves_the_other_changes_undone(rival: Owner):
    response = rival.api.patch(rival.path, {"tls": "required", "tracking": {"subdomain": "links"}})
    assert response.status_code == 409
    assert rival.api.get(rival.path).json()["tls"] == "opportunistic"


def test_a_host_stays_with_its_workspace_while_it_fails(rival: Owner, active: Owner, zone: Zone):
    zone.server.zones.pop(HOST)
    active.verify()
    assert code_of(choose(rival)) == (409, "tracking_host_taken")


def test_a_host_that_was_given_back_is_free(rival: Owner, active: Owner):
    choose(active, None)
    assert choose(rival).status_code == 200
    assert rival.verify()["tracking"]["status"] == "active"


def test_of_two_that_wait_the_first_proven_one_gets_the_host(owner: Owner, bob, bobs_api: Api, zone: Zone):
    choose(owner)
    second = Owner(bobs_api, zone, NAME)
    zone.publish(second.record("DKIM"))
    choose(second)
    owner.publish("Tracking").verify()
    second.verify()
    hosts = {host.status: host for host in TrackingHost.objects.all()}
    assert hosts.keys() == {"active", "failed"}
    loser = next(one for one in (owner, second) if one.body["id"] == hosts["failed"].domain_id)
    assert "belongs to another workspace" in loser.api.get(loser.path).json()["tracking"]["error"]


def test_nobody_gets_the_host_of_a_domain_that_he_does_not_control(owner: Owner, bob, bobs_api: Api, zone: Zone):
    stranger = Owner(bobs_api, zone, NAME)
    choose(stranger)
    choose(owner)
    owner.publish("Tracking")
    assert stranger.verify()["tracking"]["status"] == "pending"
    assert owner.verify()["tracking"]["status"] == "active"


# Limits and the end of a host


def test_a_workspace_has_ten_new_names_a_minute(owner: Owner, zone: Zone):
    now = Now()
    for number in range(MAX_NEW_NAMES_PER_MINUTE):
        TrackingHost.objects.create(workspace=Domain.objects.get(name=NAME).workspace, name=f"{number}.x", seen_at=now)
    choose(owner)
    owner.publish("Tracking").verify()
    host = TrackingHost.objects.get(name=HOST)
    assert (host.seen_at, host.status) == (None, "active")
    TrackingHost.objects.filter(name="0.x").update(seen_at=Now() - timedelta(minutes=2))
    owner.verify()
    host.refresh_from_db()
    assert host.seen_at


def test_a_host_without_links_is_deleted_and_another_stays_for_thirty_days(owner: Owner, zone: Zone):
    choose(owner)
    choose(owner, "click")
    assert [host.name for host in TrackingHost.objects.all()] == [f"click.{NAME}"]
    owner.body = owner.api.get(owner.path).json()
    zone.publish(owner.record("Tracking"))
    owner.verify()
    choose(owner, "links")
    assert set(TrackingHost.objects.filter(retired_at=None).values_list("name", flat=True)) == {HOST}
    assert set(TrackingHost.objects.exclude(retired_at=None).values_list("name", flat=True)) == {f"click.{NAME}"}


def test_a_host_outlives_its_domain_by_thirty_days(active: Owner):
    assert active.api.delete(active.path).status_code == 200
    host = TrackingHost.objects.get()
    assert (host.domain_id, host.name, bool(host.retired_at)) == (None, HOST, True)
    TrackingHost.objects.update(retired_at=Now() - timedelta(days=29))
    expire()
    assert TrackingHost.objects.exists()
    TrackingHost.objects.update(retired_at=Now() - timedelta(days=31))
    expire()
    assert not TrackingHost.objects.exists()


# What emails track by default


def test_a_domain_decides_what_emails_track(api: Api, alice: Account):
    domain = alice.workspace.domains.get()
    assert api.get(f"/domains/{domain.id}").json()["openTracking"] is True
    body = api.patch(f"/domains/{domain.id}", {"openTracking": False, "clickTracking": False}).json()
    assert (body["openTracking"], body["clickTracking"], body["tls"]) == (False, False, "opportunistic")
    bodies = (mail(), mail(trackClicks=True), mail(trackOpens=True), mail(trackOpens=False))
    expected = [(False, False), (False, True), (True, False), (False, False)]
    ids = [api.post("/emails/send", given).json()["id"] for given in bodies]
    emails = [Email.objects.get(id=email_id) for email_id in ids]
    assert [(email.track_opens, email.track_clicks) for email in emails] == expected


def test_domain_and_stream_can_both_switch_tracking_off(api: Api, alice: Account):
    domain = alice.workspace.domains.get()
    api.patch(f"/domains/{domain.id}", {"openTracking": False})
    stream = {"id": "news", "name": "News", "trackOpens": True, "trackClicks": False}
    assert api.post("/streams", stream).status_code == 201
    for given in (mail(stream="news"), mail(stream="news", trackOpens=True, trackClicks=True)):
        assert api.post("/emails/send", given).status_code == 202
    tracked = list(Email.objects.order_by("created_at").values_list("track_opens", "track_clicks"))
    assert tracked == [(False, False), (True, True)]


def test_a_batch_follows_its_domain(api: Api, alice: Account):
    api.post("/templates", {"name": "T", "alias": "t", "subject": "S", "htmlContent": "<p>x</p>"})
    domain = alice.workspace.domains.get()
    api.patch(f"/domains/{domain.id}", {"clickTracking": False})
    batch = {"from": mail()["from"], "templateId": "t", "recipients": [{"to": "ada@example.com"}]}
    assert api.post("/emails/batch", batch).status_code == 202
    email = Email.objects.get()
    assert (email.track_opens, email.track_clicks) == (True, False)


def test_changes_of_tracking_are_in_the_audit_log(api: Api, alice: Account):
    domain = alice.workspace.domains.get()
    for _ in range(2):
        api.patch(f"/domains/{domain.id}", {"openTracking": False})
    changes = AuditEntry.objects.filter(act=AuditEntry.Action.DOMAIN_CHANGED)
    assert list(changes.values_list("about", flat=True)) == ["alice.example: openTracking=false"]
