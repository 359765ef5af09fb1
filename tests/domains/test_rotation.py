"""A new DKIM key takes over when the DNS shows it, and the old record stays for a while."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from domains.models import DkimKey, Domain
from domains.signing_identities import identities
from tests.conftest import Account
from tests.domains.conftest import NAME, Owner
from tests.lib.nameserver import SERVFAIL, NameServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def proven(owner: Owner) -> Owner:
    owner.publish().verify()
    return owner


def rotate(owner: Owner) -> None:
    response = owner.api.post(f"{owner.path}/rotate-dkim")
    assert response.status_code == 200
    owner.body = response.json()


def signing(owner: Owner, account: Account) -> str:
    pair = account.workspace.id, NAME
    return f"{identities({pair})[pair].key.selector}._domainkey"


def test_the_old_key_signs_until_the_new_one_is_seen(proven: Owner, alice: Account):
    rotate(proven)
    old, new = proven.record("DKIM"), proven.record("DKIM", 1)
    assert (old["status"], old["required"]) == ("verified", True)
    assert (new["status"], new["required"]) == ("pending", False)
    assert "Publish this one, too, and keep the other" in new["note"]
    assert signing(proven, alice) == old["name"]

    assert proven.verify()["status"] == "verified"
    assert signing(proven, alice) == old["name"]

    proven.zone.publish(new)
    assert proven.verify()["status"] == "verified"
    assert signing(proven, alice) == new["name"]


def test_the_old_record_is_to_be_kept_for_two_weeks_and_leaves_the_list_then(proven: Owner):
    rotate(proven)
    proven.zone.publish(proven.record("DKIM", 1))
    proven.verify()
    old, new = proven.record("DKIM"), proven.record("DKIM", 1)
    assert "Keep this record until 20" in old["note"]
    assert (old["required"], new["required"], new["note"]) == (False, True, None)

    DkimKey.objects.exclude(retired_at=None).update(retired_at=Now() - timedelta(days=13, hours=23))
    proven.verify()
    assert len(proven.body["records"]) == 5
    DkimKey.objects.exclude(retired_at=None).update(retired_at=Now() - timedelta(days=14))
    proven.verify()
    assert [one["name"] for one in proven.body["records"] if one["record"] == "DKIM"] == [new["name"]]
    assert DkimKey.objects.filter(domain__name=NAME).count() == 1


def test_the_old_record_may_leave_the_dns_without_harm(proven: Owner, dns: NameServer):
    rotate(proven)
    proven.zone.publish(proven.record("DKIM", 1))
    proven.verify()
    dns.remove(proven.record("DKIM")["fqdn"])
    assert proven.verify()["status"] == "verified"


def test_the_old_key_signs_again_when_the_new_record_vanishes(proven: Owner, alice: Account, dns: NameServer):
    rotate(proven)
    old, new = proven.record("DKIM"), proven.record("DKIM", 1)
    proven.zone.publish(new)
    proven.verify()
    dns.remove(new["fqdn"])
    assert proven.verify()["status"] == "verified"
    assert signing(proven, alice) == old["name"]
    proven.zone.publish(new)
    proven.verify()
    assert signing(proven, alice) == new["name"]


def test_trouble_in_the_dns_does_not_change_who_signs(proven: Owner, alice: Account, dns: NameServer):
    rotate(proven)
    new = proven.record("DKIM", 1)
    proven.zone.publish(new)
    proven.verify()
    dns.put(new["fqdn"], SERVFAIL)
    proven.verify()
    assert signing(proven, alice) == new["name"]


def test_rotating_again_before_the_new_key_is_seen_changes_nothing(proven: Owner):
    rotate(proven)
    first = proven.body
    rotate(proven)
    assert proven.body == first


def test_a_key_that_nobody_has_published_is_not_rotated(owner: Owner):
    rotate(owner)
    assert DkimKey.objects.filter(domain__name=NAME).count() == 1


def test_a_rotation_is_looked_for_at_once_and_every_minute(proven: Owner):
    rotate(proven)
    domain = Domain.objects.get(name=NAME)
    assert domain.check_due_at <= domain.watched_since
    proven.verify()
    domain.refresh_from_db()
    assert domain.check_due_at - domain.last_checked_at < timedelta(seconds=70)


def test_selectors_are_never_used_twice(proven: Owner):
    for _ in range(3):
        rotate(proven)
        for record in proven.body["records"]:
            proven.zone.publish(record)
        proven.verify()
    assert len(set(DkimKey.objects.values_list("selector", flat=True))) == 4
    assert len(set(DkimKey.objects.values_list("public_key", flat=True))) == 4
