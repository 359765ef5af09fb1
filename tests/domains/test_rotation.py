"""DKIM key rotation: the new key signs once it is published, and the old record is kept for two weeks."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from domains.models import DkimKey, Domain
from domains.signing_identities import load_identities
from tests.conftest import Account
from tests.core.lib.nameserver import SERVFAIL, NameServer
from tests.domains.conftest import NAME, Owner

pytestmark = pytest.mark.django_db


@pytest.fixture
def verified_owner(owner: Owner) -> Owner:
    owner.publish().verify()
    return owner


def rotate(owner: Owner) -> None:
    response = owner.api.post(f"{owner.path}/rotate-dkim")
    assert response.status_code == 200
    owner.body = response.json()


def signing_record_name(owner: Owner, account: Account) -> str:
    pair = account.workspace.id, NAME
    return f"{load_identities({pair})[pair].key.selector}._domainkey"


def test_the_old_key_signs_until_the_new_one_is_published(verified_owner: Owner, alice: Account):
    rotate(verified_owner)
    old, new = verified_owner.record("DKIM"), verified_owner.record("DKIM", 1)
    assert (old["status"], old["required"]) == ("verified", True)
    assert (new["status"], new["required"]) == ("pending", False)
    assert "Publish this record and keep the existing one" in new["note"]
    assert signing_record_name(verified_owner, alice) == old["name"]

    assert verified_owner.verify()["status"] == "verified"
    assert signing_record_name(verified_owner, alice) == old["name"]

    verified_owner.zone.publish(new)
    assert verified_owner.verify()["status"] == "verified"
    assert signing_record_name(verified_owner, alice) == new["name"]


def test_the_old_record_is_listed_for_two_weeks(verified_owner: Owner):
    rotate(verified_owner)
    verified_owner.zone.publish(verified_owner.record("DKIM", 1))
    verified_owner.verify()
    old, new = verified_owner.record("DKIM"), verified_owner.record("DKIM", 1)
    assert "Keep this record until 20" in old["note"]
    assert (old["required"], new["required"], new["note"]) == (False, True, None)

    DkimKey.objects.exclude(retired_at=None).update(retired_at=Now() - timedelta(days=13, hours=23))
    verified_owner.verify()
    assert len(verified_owner.body["records"]) == 5
    DkimKey.objects.exclude(retired_at=None).update(retired_at=Now() - timedelta(days=14))
    verified_owner.verify()
    assert [one["name"] for one in verified_owner.body["records"] if one["record"] == "DKIM"] == [new["name"]]
    assert DkimKey.objects.filter(domain__name=NAME).count() == 1


def test_removing_the_old_record_keeps_the_domain_verified(verified_owner: Owner, dns: NameServer):
    rotate(verified_owner)
    verified_owner.zone.publish(verified_owner.record("DKIM", 1))
    verified_owner.verify()
    dns.remove(verified_owner.record("DKIM")["fqdn"])
    assert verified_owner.verify()["status"] == "verified"


def test_the_old_key_signs_again_when_the_new_record_is_removed(verified_owner: Owner, alice: Account, dns: NameServer):
    rotate(verified_owner)
    old, new = verified_owner.record("DKIM"), verified_owner.record("DKIM", 1)
    verified_owner.zone.publish(new)
    verified_owner.verify()
    dns.remove(new["fqdn"])
    assert verified_owner.verify()["status"] == "verified"
    assert signing_record_name(verified_owner, alice) == old["name"]
    verified_owner.zone.publish(new)
    verified_owner.verify()
    assert signing_record_name(verified_owner, alice) == new["name"]


def test_a_dns_error_does_not_change_the_signing_key(verified_owner: Owner, alice: Account, dns: NameServer):
    rotate(verified_owner)
    new = verified_owner.record("DKIM", 1)
    verified_owner.zone.publish(new)
    verified_owner.verify()
    dns.put(new["fqdn"], SERVFAIL)
    verified_owner.verify()
    assert signing_record_name(verified_owner, alice) == new["name"]


def test_rotating_again_before_the_new_key_is_published_changes_nothing(verified_owner: Owner):
    rotate(verified_owner)
    first = verified_owner.body
    rotate(verified_owner)
    assert verified_owner.body == first


def test_an_unpublished_key_is_not_rotated(owner: Owner):
    rotate(owner)
    assert DkimKey.objects.filter(domain__name=NAME).count() == 1


def test_a_new_key_is_checked_immediately_and_then_every_minute(verified_owner: Owner):
    rotate(verified_owner)
    domain = Domain.objects.get(name=NAME)
    assert domain.check_due_at <= domain.watched_since
    verified_owner.verify()
    domain.refresh_from_db()
    assert domain.check_due_at - domain.last_checked_at < timedelta(seconds=70)


def test_selectors_and_keys_are_never_reused(verified_owner: Owner):
    for _ in range(3):
        rotate(verified_owner)
        for record in verified_owner.body["records"]:
            verified_owner.zone.publish(record)
        verified_owner.verify()
    assert len(set(DkimKey.objects.values_list("selector", flat=True))) == 4
    assert len(set(DkimKey.objects.values_list("public_key", flat=True))) == 4
