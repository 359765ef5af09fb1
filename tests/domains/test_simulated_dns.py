"""Simulated DNS of the embedded mode: a trial sees verified domains and receives for them."""

from datetime import UTC, datetime

import pytest

from domains.check_queue.simulated_dns import is_simulated
from domains.models import Domain, ReceivingDomain
from domains.services import change_domain, register_domain
from tests.conftest import Api, make_key
from tests.domains.conftest import check_due_domains

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _trial(settings):
    settings.EMBEDDED, settings.DELIVERY_TRANSPORT, settings.SENDING_DOMAIN_POLICY = True, "inbox", "registered"
    settings.DNS_SERVERS, settings.RECEIVING_MX = [], ["mx.demo.example"]


@pytest.fixture
def key(alice) -> Api:
    return Api(make_key(alice.workspace))


def test_a_reserved_name_is_verified_and_receives(alice):
    domain = register_domain(alice.workspace, name="shop.example", changes={"receiving": True})
    check_due_domains()
    domain = Domain.objects.get(id=domain.id)
    assert (domain.status, domain.receiving.status) == ("verified", "active")
    active = ReceivingDomain.objects.filter(name="shop.example", status="active", proven_at__isnull=False)
    assert active.get().workspace == alice.workspace
    change_domain(domain, {"receiving": False})
    assert not active.exists()


def test_all_records_of_its_page_are_found(alice, key):
    register_domain(alice.workspace, name="shop.test", changes={"receiving": True})
    check_due_domains()
    (body,) = key.get("/domains").json()["data"]
    assert {record["record"]: record["status"] for record in body["records"]} == dict.fromkeys(
        ("DKIM", "SPF", "DMARC", "ReturnPath", "Receiving"), "verified"
    )
    assert body["warnings"] == []
    assert key.get(f"/domains/{body['id']}").json()["receiving"]["status"] == "active"


def test_a_domain_that_does_not_receive_has_no_warning(alice, key):
    register_domain(alice.workspace, name="shop.example")
    check_due_domains()
    (body,) = key.get("/domains").json()["data"]
    assert (body["status"], body["warnings"]) == ("verified", [])


def test_one_workspace_receives_for_a_name(alice, bob):
    first, second = (
        register_domain(account.workspace, name="shop.example", changes={"receiving": True}) for account in (alice, bob)
    )
    check_due_domains()
    statuses = {row.workspace_id: row.status for row in ReceivingDomain.objects.all()}
    assert sorted(statuses.values()) == ["active", "failed"]
    assert {first.workspace_id, second.workspace_id} == set(statuses)


def test_only_reserved_names_of_a_trial_are_simulated(settings):
    assert is_simulated("demo.example")
    assert is_simulated("a.b.test")
    for name in ("example.com", "example", "test.org", "xn--e1afmkfd", "example.dev", ""):
        assert is_simulated(name) == (name == "example"), name
    for setting, value in (
        ("EMBEDDED", False),
        ("DELIVERY_TRANSPORT", "smtp"),
        ("SENDING_DOMAIN_POLICY", "verified"),
        ("DNS_SERVERS", [("127.0.0.1", 53)]),
    ):
        before = getattr(settings, setting)
        setattr(settings, setting, value)
        assert not is_simulated("demo.example"), setting
        setattr(settings, setting, before)


def test_a_name_that_could_exist_is_looked_up(alice, settings, empty_dns):
    settings.DNS_SERVERS = [empty_dns.address]
    domain = register_domain(alice.workspace, name="shop.example.com")
    check_due_domains()
    checked = Domain.objects.get(id=domain.id)
    assert checked.status == "pending"
    assert checked.last_checked_at <= datetime.now(UTC)
