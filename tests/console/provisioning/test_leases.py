"""Leases of configuration runs."""

from datetime import timedelta

import pytest
from django.utils import timezone

from console.provisioning.leases import ALL_WORKSPACES
from console.provisioning.models import ConfigurationLease
from console.provisioning.tasks import erase
from tests.conftest import Account, Api, code_of, make_key
from tests.console.provisioning.conftest import management_api
from tests.rows import each

pytestmark = pytest.mark.django_db

LEASE, RELEASE = "/admin/configuration/lease", "/admin/configuration/release"
FIRST, SECOND = {"token": "a" * 22}, {"token": "b" * 22}


def test_one_run_at_a_time_has_the_lease_and_renews_it(owner_api: Api, alice: Account):
    taken = owner_api.post(LEASE, FIRST)
    assert taken.status_code == 200
    other = Api(make_key(alice.workspace))
    refused = other.post(LEASE, SECOND)
    assert (code_of(refused), refused["Retry-After"]) == ((409, "configuration_in_progress"), "2")
    assert owner_api.post(LEASE, FIRST).json()["expiresAt"] >= taken.json()["expiresAt"]
    other.post(RELEASE, SECOND)
    assert code_of(other.post(LEASE, SECOND)) == (409, "configuration_in_progress")
    assert owner_api.post(RELEASE, FIRST).json() == {"expiresAt": None}
    assert other.post(LEASE, SECOND).status_code == 200


def test_a_lease_ends_by_itself(owner_api: Api, alice: Account):
    owner_api.post(LEASE, FIRST)
    ConfigurationLease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert owner_api.post(LEASE, SECOND).status_code == 200
    assert ConfigurationLease.objects.get().token == SECOND["token"]
    ConfigurationLease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    erase()
    assert not ConfigurationLease.objects.exists()


def test_a_management_key_leases_its_workspaces_and_the_list_of_them(alice: Account, bob: Account, owner_api: Api):
    platform, reseller = management_api(), management_api("resold")
    of_alice = {"workspaceId": alice.workspace.id}
    assert platform.post(LEASE, FIRST | of_alice).status_code == 200
    assert platform.post(LEASE, FIRST).status_code == 200
    assert {*ConfigurationLease.objects.values_list("subject", flat=True)} == {alice.workspace.id, ALL_WORKSPACES}
    assert code_of(owner_api.post(LEASE, SECOND)) == (409, "configuration_in_progress")
    assert code_of(reseller.post(LEASE, SECOND | of_alice)) == (404, "not_found")
    assert owner_api.post(LEASE, SECOND | {"workspaceId": bob.workspace.id}).status_code == 404


@each("scope", ["read_only", "sending_access", "sending_only"])
def test_a_key_that_changes_nothing_takes_no_lease(alice: Account, scope):
    api = Api(make_key(alice.workspace, scope))
    assert [code_of(api.post(path, FIRST)) for path in (LEASE, RELEASE)] == [(403, "insufficient_scope")] * 2


@each("body", [{}, {"token": "short"}, {"token": "a" * 101}, FIRST | {"workspace": "ws_1"}])
def test_an_invalid_lease_is_refused(owner_api: Api, body):
    assert code_of(owner_api.post(LEASE, body)) == (422, "validation_error")
