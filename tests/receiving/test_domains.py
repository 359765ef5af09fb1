"""Receiving domains: their record, checks, ownership, and the end of receiving."""

import asyncio
from datetime import timedelta

import pytest
from django.utils import timezone

from core.lib.network.resolver import Resolver
from domains.check_queue.claims import CheckClaim, record_check
from domains.models import Domain, ReceivingDomain
from domains.receiving.services import expected_mx, move_receiving
from domains.record_checks.receiving import check_receiving
from domains.record_checks.results import RecordCheck, RecordStatus, VerificationResult
from tests.conftest import Api, make_account, make_domain, make_key
from tests.core.lib.nameserver import SERVFAIL, NameServer
from tests.rows import each

pytestmark = pytest.mark.django_db

VALID, MISSING, UNKNOWN = RecordStatus.VALID, RecordStatus.MISSING, RecordStatus.UNKNOWN


@pytest.fixture
def domain(alice) -> Domain:
    return make_domain(alice.workspace, "in.alice.example")


@pytest.fixture
def client(alice) -> Api:
    return Api(make_key(alice.workspace))


def enable(client: Api, domain: Domain, *, value: bool = True):
    return client.patch(f"/domains/{domain.id}", {"receiving": value})


def check(domain: Domain, rows, *, dkim: RecordStatus = VALID) -> dict:
    """Check the MX records of a domain in DNS, with a result of its DKIM key; return `receiving` of the API."""
    domain = Domain.objects.select_related("receiving_domain").get(id=domain.id)
    with NameServer({domain.name: rows if rows is SERVFAIL else {"MX": rows}} if rows else {}) as server:
        expected = expected_mx(domain)
        assert expected
        found = asyncio.run(check_receiving(expected, Resolver([server.address])))
    ok = RecordCheck(VALID)
    result = VerificationResult({"pr1": RecordCheck(dkim)}, ok, ok, ok, ok)
    Domain.objects.filter(id=domain.id).update(checks_begun=domain.checks_begun + 1)
    record_check(CheckClaim(domain.id, domain.checks_begun + 1), result, found)
    shown = Api(make_key(domain.workspace)).get(f"/domains/{domain.id}").json()
    return {**shown["receiving"], "warnings": [warning["code"] for warning in shown["warnings"]]}


def status(domain: Domain, rows, **options) -> str:
    return check(domain, rows, **options)["status"]


def is_active(name: str) -> bool:
    return ReceivingDomain.objects.filter(name=name, status="active", proven_at__isnull=False).exists()


OURS = ["10 mx.demo.example."]


def test_a_domain_shows_the_record_to_publish(client, domain, settings):
    settings.RECEIVING_MX = ["mx1.demo.example", "mx2.demo.example"]
    shown = enable(client, domain).json()
    assert shown["receiving"] == {"enabled": True, "status": "pending", "error": None}
    records = [record for record in shown["records"] if record["record"] == "Receiving"]
    assert [
        (record["type"], record["name"], record["value"], record["priority"], record["required"]) for record in records
    ] == [("MX", "@", "mx1.demo.example", 10, False), ("MX", "@", "mx2.demo.example", 10, False)]
    shown = enable(client, domain, value=False).json()
    assert shown["receiving"] == {"enabled": False, "status": "disabled", "error": None}
    assert not [record for record in shown["records"] if record["record"] == "Receiving"]
    assert not ReceivingDomain.objects.exists()


@each(("rows", "expected", "error"), [
    (OURS, "active", None),
    (["10 MX.demo.example.", "20 backup.other.example."], "active", None),
    (["10 mx.demo.example.", "10 other.example."], "failed", "other.example receives"),
    (["5 other.example.", "10 mx.demo.example."], "failed", "other.example receives"),
    (["10 other.example."], "failed", "other.example receives"),
    (["0 ."], "failed", ". receives"),
    ([], "pending", "No MX record"),
    (None, "pending", "No MX record"),
])  # fmt: skip
def test_the_lowest_mx_must_be_ours(client, domain, rows, expected, error):
    enable(client, domain)
    found = check(domain, rows)
    assert found["status"] == expected
    assert (found["error"] or "").startswith(error or "")
    assert bool(found["error"]) == bool(error)
    assert is_active(domain.name) == (expected == "active")


def test_the_dkim_record_shows_the_owner(client, domain):
    enable(client, domain)
    found = check(domain, OURS, dkim=MISSING)
    assert (found["status"], found["error"][:15]) == ("pending", "The DKIM record")
    assert status(domain, OURS, dkim=UNKNOWN) == "pending"
    assert status(domain, OURS) == "active"


def test_a_failed_lookup_changes_nothing(client, domain):
    enable(client, domain)
    assert status(domain, SERVFAIL) == "pending"
    assert status(domain, OURS) == "active"
    assert status(domain, SERVFAIL) == "active"
    assert ReceivingDomain.objects.get().missing_since is None


@each("rows", [None, ["5 other.example."]])
def test_an_active_domain_is_lost_after_three_days(client, domain, rows):
    enable(client, domain)
    check(domain, OURS)
    for _ in range(3):
        assert status(domain, rows) == "active"
    ReceivingDomain.objects.update(missing_since=timezone.now() - timedelta(hours=71))
    assert status(domain, rows) == "active"
    ReceivingDomain.objects.update(missing_since=timezone.now() - timedelta(hours=72))
    assert status(domain, rows) == "failed"
    assert ReceivingDomain.objects.get().proven_at is None
    assert status(domain, OURS) == "active"


def test_an_organization_with_mailboxes_is_advised_to_use_a_subdomain(client, alice):
    apex = make_domain(alice.workspace, "alice.example")
    enable(client, apex)
    found = check(apex, ["10 mailboxes.example."])
    assert found["warnings"] == ["use_subdomain"]
    assert check(apex, OURS)["warnings"] == []


def test_one_workspace_receives_for_a_name(client, domain):
    bob = make_account("bob")
    other = make_domain(bob.workspace, domain.name)
    bobs = Api(make_key(bob.workspace))
    # Before it is proven, both may wait for it.
    enable(client, domain)
    enable(bobs, other)
    assert status(domain, OURS) == "active"
    found = check(other, OURS)
    assert (found["status"], found["error"]) == (
        "failed",
        "The email of in.alice.example is received by another workspace.",
    )
    enable(bobs, other, value=False)
    refused = enable(bobs, other)
    assert (refused.status_code, refused.json()["code"]) == (409, "receiving_domain_taken")
    assert "alice'" not in refused.content.decode()


def test_staff_can_move_a_name(client, domain):
    bob = make_account("bob")
    other = make_domain(bob.workspace, domain.name)
    enable(client, domain)
    enable(Api(make_key(bob.workspace)), other)
    check(domain, OURS)
    move_receiving(ReceivingDomain.objects.get(domain=other))
    assert status(other, OURS) == "active"
    assert status(domain, OURS) == "failed"


def test_names_of_the_service_and_a_service_without_a_name_cannot_receive(client, domain, alice, settings):
    settings.RETURN_PATH_DOMAIN = "bounce.service.example"
    own = make_domain(alice.workspace, "bounce.service.example")
    assert enable(client, own).json()["code"] == "receiving_unavailable"
    settings.RECEIVING_MX, settings.EHLO_NAME = [], "localhost"
    assert enable(client, domain).json()["code"] == "receiving_unavailable"
    settings.EHLO_NAME = "mail.service.example"
    records = enable(client, domain).json()["records"]
    (receiving,) = [record for record in records if record["record"] == "Receiving"]
    assert receiving["value"] == "mail.service.example"
