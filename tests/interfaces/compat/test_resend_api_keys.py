"""Resend's API: API keys."""

import uuid

import pytest

from core.workspaces.api import authentication
from core.workspaces.models import ApiKey, AuditEntry
from domains.models import Domain
from tests.conftest import Account, make_domain, make_key
from tests.interfaces.compat.conftest import Dialect
from tests.interfaces.compat.test_resend import error, mail
from tests.rows import each

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(alice: Account, key: str) -> Dialect:
    """A client with a key that manages the workspace of the other fixtures."""
    return Dialect("resend", make_key(alice.workspace, "workspace_admin"))


def test_a_created_key_sends(admin):
    response = admin.post("/api-keys", {"name": "Website", "permission": "sending_access"})
    assert response.status_code == 201
    body = response.json()
    assert body.keys() == {"id", "token"}
    assert str(uuid.UUID(body["id"])) == body["id"]
    assert Dialect("resend", body["token"]).post("/emails", mail()).status_code == 200
    assert ApiKey.objects.get(name="Website").scope == "sending_only"
    assert error(Dialect("resend", body["token"]).get("/emails")) == (401, "restricted_api_key")


def test_a_key_without_permission_has_full_access(admin):
    admin.post("/api-keys", {"name": "Website"})
    assert ApiKey.objects.get(name="Website").scope == "full_access"


def test_a_key_is_limited_to_a_domain(admin, alice, bob):
    domain = admin.get("/domains").json()["data"][0]
    make_domain(alice.workspace, "other.example")
    body = {"name": "Website", "permission": "sending_access", "domain_id": domain["id"]}
    limited = Dialect("resend", admin.post("/api-keys", body).json()["token"])
    assert limited.post("/emails", mail()).status_code == 200
    assert limited.post("/emails", mail(**{"from": "a@other.example"})).status_code >= 400
    for domain_id in (Domain.objects.create(workspace=bob.workspace, name="bob.example").id, "x"):
        assert error(admin.post("/api-keys", {**body, "domain_id": domain_id})) == (404, "not_found")


def test_keys_are_listed_without_secrets_and_deleted(admin):
    made = admin.post("/api-keys", {"name": "Website"}).json()
    listed = admin.get("/api-keys").json()
    assert listed["object"] == "list"
    (item,) = [one for one in listed["data"] if one["id"] == made["id"]]
    assert item.keys() == {"id", "name", "created_at", "last_used_at"}
    assert made["token"] not in str(listed)
    response = admin.call("DELETE", f"/api-keys/{made['id']}")
    deleted = {"object": "api_key", "id": made["id"], "deleted": True}
    assert (response.status_code, response.json()) == (200, deleted)
    authentication.cache.clear()
    assert error(Dialect("resend", made["token"]).get("/domains"))[0] in {401, 403}
    assert made["id"] not in str(admin.get("/api-keys").json())
    assert error(admin.call("DELETE", f"/api-keys/{made['id']}")) == (404, "not_found")
    assert AuditEntry.objects.filter(act="key_revoked").count() == 1


@each("scope", ["full_access", "sending_access", "read_only"])
def test_other_keys_have_no_access(alice, admin, scope):
    other = Dialect("resend", make_key(alice.workspace, scope))
    path = f"/api-keys/{ApiKey.objects.first().id}"
    before = [*ApiKey.objects.order_by("id").values_list("id", "revoked_at")]
    for response in (other.get("/api-keys"), other.post("/api-keys", {"name": "x"}), other.call("DELETE", path)):
        assert error(response) == (401, "restricted_api_key")
    assert [*ApiKey.objects.order_by("id").values_list("id", "revoked_at")] == before


@each(
    ("body", "name"),
    [
        ({}, "missing_required_field"),
        ({"name": ""}, "missing_required_field"),
        ({"name": "x" * 101}, "validation_error"),
        ({"name": "x", "permission": "admin"}, "validation_error"),
    ],
)
def test_an_invalid_request_is_refused(admin, body, name):
    before = ApiKey.objects.count()
    assert error(admin.post("/api-keys", body)) == (422, name)
    assert ApiKey.objects.count() == before


def test_a_key_is_not_renamed(admin):
    made = admin.post("/api-keys", {"name": "Website"}).json()
    assert error(admin.call("PATCH", f"/api-keys/{made['id']}", {"name": "Shop"})) == (501, "application_error")
