"""Domain statuses, with a real name server."""

import time
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from domains.models import Domain
from tests.conftest import Account, Api, make_key
from tests.core.lib.nameserver import GARBAGE, REFUSED, SERVFAIL, SILENCE, TRUNCATED, NameServer
from tests.domains.conftest import NAME, Owner

pytestmark = pytest.mark.django_db

DNS_ERRORS = [SERVFAIL, REFUSED, GARBAGE, SILENCE]


def age(owner: Owner, **fields: timedelta) -> None:
    """Move times of the domain's row into the past."""
    Domain.objects.filter(id=owner.body["id"]).update(**{name: Now() - past for name, past in fields.items()})


def statuses(body: dict[str, Any]) -> dict[str, str]:
    return {one["record"]: one["status"] for one in body["records"]}


def break_dns(owner: Owner, dns_error: Any) -> None:
    for record in owner.body["records"]:
        owner.zone.server.put(record["fqdn"], dns_error)


def test_a_domain_without_records_stays_pending_and_lists_the_records_to_publish(owner: Owner):
    body = owner.verify()
    assert (body["status"], body["verifiedAt"]) == ("pending", None)
    assert body["lastCheckedAt"]
    assert set(statuses(body).values()) == {"pending"}
    assert owner.record("DKIM")["error"] == f"No TXT record found at {owner.record('DKIM')['fqdn']}."
    assert owner.record("SPF")["error"] == f"No SPF record found at {NAME}."
    assert owner.record("DMARC")["error"] == f"No DMARC record found at _dmarc.{NAME}."
    assert owner.record("ReturnPath")["error"] == f"No CNAME record found at bounce.{NAME}."


def test_a_domain_whose_records_are_published_is_verified(owner: Owner):
    owner.publish()
    body = owner.verify()
    assert body["status"] == "verified"
    assert body["verifiedAt"]
    assert set(statuses(body).values()) == {"verified"}
    assert {one["error"] for one in body["records"]} == {None}
    assert owner.record("DKIM")["found"] == owner.record("DKIM")["value"]
    assert owner.record("ReturnPath")["found"] == "bounce.service.example"
    assert owner.record("SPF")["note"] == "This record uses 1 of the 10 DNS lookups that receivers allow."
    assert owner.api.get(owner.path).json() == body


def test_dkim_and_spf_are_enough(owner: Owner):
    owner.publish("DKIM", "SPF")
    body = owner.verify()
    assert body["status"] == "verified"
    assert statuses(body) == {"DKIM": "verified", "SPF": "verified", "DMARC": "pending", "ReturnPath": "pending"}


@pytest.mark.parametrize("kinds", [("DKIM",), ("SPF",), ("DMARC", "ReturnPath")])
def test_dkim_or_spf_alone_is_not_enough(owner: Owner, kinds):
    assert owner.publish(*kinds).verify()["status"] == "pending"


def test_every_status_from_pending_to_failed_and_back(owner: Owner, dns: NameServer):
    assert owner.verify()["status"] == "pending"
    verified_at = owner.publish().verify()["verifiedAt"]
    key = owner.record("DKIM")

    dns.remove(key["fqdn"])
    body = owner.verify()
    assert (body["status"], body["verifiedAt"]) == ("temporary_failure", verified_at)
    assert statuses(body)["DKIM"] == "failed"

    age(owner, missing_since=timedelta(hours=71, minutes=59))
    owner.verify()
    assert owner.verify()["status"] == "temporary_failure"
    age(owner, missing_since=timedelta(hours=72))
    assert owner.verify()["status"] == "failed"

    owner.zone.publish(key)
    body = owner.verify()
    assert body["status"] == "verified"
    assert body["verifiedAt"] > verified_at


def test_a_record_missing_for_three_days_in_two_checks_does_not_fail_a_domain(owner: Owner, dns: NameServer):
    owner.publish().verify()
    dns.remove(owner.record("DKIM")["fqdn"])
    owner.verify()
    age(owner, missing_since=timedelta(hours=100))
    assert owner.verify()["status"] == "temporary_failure"
    assert owner.verify()["status"] == "failed"


def test_a_record_that_is_published_again_in_time_resets_the_absence(owner: Owner, dns: NameServer):
    owner.publish().verify()
    key = owner.record("DKIM")
    dns.remove(key["fqdn"])
    owner.verify()
    age(owner, missing_since=timedelta(hours=100))
    owner.zone.publish(key)
    assert owner.verify()["status"] == "verified"
    dns.remove(key["fqdn"])
    assert [owner.verify()["status"] for _ in range(4)] == ["temporary_failure"] * 4


@pytest.mark.usefixtures("_short_dns_timeouts")
@pytest.mark.parametrize("dns_error", DNS_ERRORS)
def test_a_dns_error_never_changes_a_verified_domain(owner: Owner, dns_error):
    owner.publish().verify()
    break_dns(owner, dns_error)
    body = owner.verify()
    assert body["status"] == "verified"
    assert set(statuses(body).values()) == {"temporary_failure"}
    message = "The name servers answered with a failure" if dns_error is SERVFAIL else "The DNS lookup failed"
    assert message in owner.record("DKIM")["error"]
    assert Domain.objects.get(id=body["id"]).return_path_seen_at


def test_a_dns_error_is_not_counted_as_an_absence(owner: Owner, dns: NameServer):
    owner.publish().verify()
    dns.remove(owner.record("DKIM")["fqdn"])
    owner.verify()
    break_dns(owner, SERVFAIL)
    age(owner, missing_since=timedelta(hours=100))
    for _ in range(5):
        assert owner.verify()["status"] == "temporary_failure"


@pytest.mark.parametrize("dns_error", [SERVFAIL, REFUSED])
def test_a_dns_error_does_not_verify_a_domain(owner: Owner, dns_error):
    owner.publish()
    break_dns(owner, dns_error)
    assert owner.verify()["status"] == "pending"


def test_a_check_takes_less_than_five_seconds_without_a_dns_reply(owner: Owner):
    owner.publish().verify()
    break_dns(owner, SILENCE)
    started = time.monotonic()
    assert owner.verify()["status"] == "verified"
    assert time.monotonic() - started < 5
    assert "The DNS lookup failed" in owner.record("SPF")["error"]


def test_a_pending_domain_fails_after_a_week_without_records(owner: Owner):
    for _ in range(3):
        owner.verify()
    age(owner, missing_since=timedelta(days=6, hours=23))
    assert owner.verify()["status"] == "pending"
    age(owner, missing_since=timedelta(days=7))
    assert owner.verify()["status"] == "failed"
    assert owner.publish().verify()["status"] == "verified"


def test_a_long_record_can_have_several_strings_and_require_tcp(owner: Owner, dns: NameServer):
    owner.publish()
    key = owner.record("DKIM")
    rows = dns.zones[key["fqdn"]]
    assert len(rows["TXT"][0].split('" "')) == 2
    dns.put(key["fqdn"], TRUNCATED)
    dns.over_tcp[key["fqdn"]] = rows
    assert owner.verify()["status"] == "verified"
    assert (key["fqdn"], "TXT", "tcp") in dns.questions


def test_a_chain_of_cnames_can_lead_to_the_key(owner: Owner, dns: NameServer):
    owner.publish()
    key = owner.record("DKIM")
    dns.put("keys.elsewhere.example", dns.zones[key["fqdn"]])
    dns.put("middle.elsewhere.example", {"CNAME": ["keys.elsewhere.example."]})
    dns.put(key["fqdn"], {"CNAME": ["middle.elsewhere.example."]})
    assert owner.verify()["status"] == "verified"


def test_a_chain_of_cnames_can_lead_to_the_return_path(owner: Owner, dns: NameServer):
    dns.put("bounces.example.com", {"CNAME": ["Bounce.Service.Example."]})
    dns.put(f"bounce.{NAME}", {"CNAME": ["bounces.example.com."]})
    record = owner.verify_record("ReturnPath")
    assert (record["status"], record["found"]) == ("verified", "bounces.example.com\nbounce.service.example")


def test_a_removed_return_path_is_no_longer_used(owner: Owner, dns: NameServer):
    owner.publish().verify()
    assert Domain.objects.get(id=owner.body["id"]).return_path_seen_at
    dns.remove(f"bounce.{NAME}")
    assert owner.verify()["status"] == "verified"
    assert Domain.objects.get(id=owner.body["id"]).return_path_seen_at is None


def test_a_domain_verified_in_another_workspace_is_pending_until_its_own_key_is_published(owner: Owner, bob: Account):
    owner.publish().verify()
    other = Owner(Api(make_key(bob.workspace)), owner.zone, NAME)
    body = other.verify()
    assert body["status"] == "pending"
    assert statuses(body) == {"DKIM": "pending", "SPF": "verified", "DMARC": "verified", "ReturnPath": "verified"}
    other.publish("DKIM")
    assert other.verify()["status"] == "verified"
    assert owner.verify()["status"] == "verified"


def test_a_null_mx_is_a_warning(owner: Owner):
    owner.zone.set(NAME, "MX", "0 .")
    body = owner.publish().verify()
    (warning,) = body["warnings"]
    assert (body["status"], warning["code"]) == ("verified", "null_mx")
    assert NAME in warning["message"]
    owner.zone.set(NAME, "MX", "10 mx.example.com.")
    assert owner.verify()["warnings"] == []


def test_dns_answers_are_stored_without_control_characters(owner: Owner, dns: NameServer):
    dns.put(owner.record("DKIM")["fqdn"], {"TXT": ['"a\\000b\\027[2Jc\\255"']})
    record = owner.verify_record("DKIM")
    assert record["found"] == "a\\x00b\\x1b[2Jc\ufffd"
    assert record["status"] == "failed"


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("SPF", '"v=spf1 include:_spf.service.example x=\\000\\027 -all"'),
        ("SPF", '"v=spf1 \\000 -all"'),
        ("SPF", '"v=spf1 redirect=\\000"'),
        ("DMARC", '"v=DMARC1; p=none; x=\\000"'),
        ("DMARC", '"v=DMARC1; p=\\000"'),
        ("DMARC", '"v=DMARC1; \\000=1; \\000=2"'),
        ("DKIM", '"\\000=1; \\000=2"'),
    ],
)
def test_a_hostile_record_does_not_break_the_check(owner: Owner, dns: NameServer, kind, row):
    dns.put(owner.record(kind)["fqdn"], {"TXT": [row]})
    assert "\x00" not in str(owner.verify_record(kind))


@pytest.mark.parametrize("text", ["v=spf1 x={}", "v=DMARC1; p=none; x={}"])
def test_a_record_longer_than_receivers_accept(owner: Owner, text):
    kind = "SPF" if "spf" in text else "DMARC"
    owner.zone.set(owner.record(kind)["fqdn"], "TXT", text.format("y" * 3000))
    record = owner.verify_record(kind)
    assert record["status"] == "failed"
    assert "receivers read at most 2048" in record["error"]
    assert len(record["value"]) < 100


@pytest.mark.parametrize(("length", "message"), [(2019, "It will use"), (2020, "Remove other terms first")])
def test_a_record_near_its_maximum_length(owner: Owner, length, message):
    text = "v=spf1 x="
    owner.zone.set(NAME, "TXT", text + "y" * (length - len(text)))
    record = owner.verify_record("SPF")
    assert message in record["error"]
    assert len(record["value"]) in {2048, len("v=spf1 include:_spf.service.example ~all")}


def test_a_long_dns_answer_is_truncated(owner: Owner):
    owner.zone.set(owner.record("DKIM")["fqdn"], "TXT", "x" * 10_000)
    assert len(owner.verify_record("DKIM")["found"]) == 2001


def test_each_record_is_queried_once(owner: Owner, dns: NameServer):
    owner.publish().verify()
    assert len(dns.questions) == len(set(dns.questions))
