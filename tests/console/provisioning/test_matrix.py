"""Every operation of the management API, with each kind of key and foreign ids; add new operations to the table."""

from typing import Any

import pytest
from django.apps import apps

from core.workspaces.api import authentication
from core.workspaces.members import invite_member
from core.workspaces.models import ApiKey, Membership
from tests.conftest import Account, Api, code_of, make_key
from tests.console.provisioning.conftest import management_api
from tests.conventions.test_foreign_objects import call, calls_under
from tests.key_kinds import KEY_KINDS, api_of_kind, scope_of
from tests.rows import each

pytestmark = pytest.mark.django_db

UNKNOWN = "0" * 22
WORKSPACE = "/admin/workspaces/{}"
# By operation: a body that is valid for every permitted key, and the type of the last id. MANAGEMENT has the operations
# of management keys only.
TABLE: dict[tuple[str, str], tuple[Any, str]] = {
    ("GET", "/admin/workspaces"): (None, ""),
    ("POST", "/admin/workspaces"): ({"name": "New"}, ""),
    ("GET", "/admin/receivers"): (None, ""),
    ("GET", "/admin/transports"): (None, ""),
    ("POST", "/admin/configuration/check"): ({"name": "Shop"}, ""),
    ("POST", "/admin/configuration/lease"): ({"token": "t" * 22}, ""),
    ("POST", "/admin/configuration/release"): ({"token": "t" * 22}, ""),
    ("GET", WORKSPACE): (None, ""),
    ("PATCH", WORKSPACE): ({"name": "Renamed"}, ""),
    ("GET", f"{WORKSPACE}/usage"): (None, ""),
    ("POST", f"{WORKSPACE}/suspend"): ({"reason": "x"}, ""),
    ("POST", f"{WORKSPACE}/resume"): (None, ""),
    ("DELETE", WORKSPACE): (None, ""),
    ("POST", f"{WORKSPACE}/restore"): (None, ""),
    ("GET", f"{WORKSPACE}/audit"): (None, ""),
    ("GET", f"{WORKSPACE}/api-keys"): (None, ""),
    ("POST", f"{WORKSPACE}/api-keys"): (
        {"name": "k", "scope": "workspace_admin", "limits": {"networks": ["127.0.0.1"], "requestsPerSecond": 1}},
        "",
    ),
    ("PATCH", f"{WORKSPACE}/api-keys/{{}}"): ({"recipientRules": {"allow": ["@example.com"]}}, "key"),
    ("DELETE", f"{WORKSPACE}/api-keys/{{}}"): (None, "key"),
    ("GET", f"{WORKSPACE}/members"): (None, ""),
    ("PATCH", f"{WORKSPACE}/members/{{}}"): ({"role": "owner"}, "member"),
    ("DELETE", f"{WORKSPACE}/members/{{}}"): (None, "member"),
    ("GET", f"{WORKSPACE}/invitations"): (None, ""),
    ("POST", f"{WORKSPACE}/invitations"): ({"email": "new@example.com"}, ""),
    ("DELETE", f"{WORKSPACE}/invitations/{{}}"): (None, "invitation"),
}
MANAGEMENT = {
    ("POST", "/admin/workspaces"),
    ("GET", "/admin/receivers"),
    ("GET", "/admin/transports"),
    ("DELETE", WORKSPACE),
    *(("POST", f"{WORKSPACE}/{action}") for action in ("suspend", "resume", "restore")),
}
WITH_ID = sorted(operation for operation in TABLE if "{}" in operation[1])
# A check changes nothing, and a lease restricts no other request.
FOR_OTHER_SCOPES = {("POST", f"/admin/configuration/{action}") for action in ("check", "lease", "release")}
OTHER_KINDS = [kind for kind in KEY_KINDS if scope_of(kind) != "workspace_admin"]
OWNER_KINDS = [kind for kind in KEY_KINDS if scope_of(kind) == "workspace_admin"]


@pytest.fixture
def objects(alice: Account, bob: Account) -> dict[str, str]:
    """Objects of Alice's workspace by type."""
    Membership.objects.create(workspace=alice.workspace, user=bob.owner, role="member")
    return {
        "workspace": alice.workspace.id,
        "key": ApiKey.objects.get(id=_key_id(alice)).id,
        "member": bob.owner.email,
        "invitation": invite_member(alice.workspace, email="x@example.com", role="member", by=alice.owner).id,
    }


def _key_id(account: Account) -> str:
    make_key(account.workspace, "read_only")
    return str(ApiKey.objects.filter(workspace=account.workspace).latest("created_at").id)


def path_of(path: str, *ids: str) -> str:
    return path.format(*ids[: path.count("{}")])


def all_rows() -> dict[str, list]:
    """Return the rows that the management API can change, without the use of keys."""
    rows = {}
    for model in (*apps.get_app_config("workspaces").get_models(), *apps.get_app_config("system_mail").get_models()):
        rows[model.__name__] = [
            {name: value for name, value in row.items() if name != "last_used_at"}
            for row in model.objects.order_by("pk").values()
        ]
    return rows


def test_every_operation_is_in_the_table():
    assert calls_under("/v1/admin/") == TABLE.keys()


@each(("method", "path"), sorted(TABLE))
def test_a_management_key_has_access(platform: Api, objects, method, path):
    body, kind = TABLE[method, path]
    response = call(platform, method, path_of(path, objects["workspace"], objects.get(kind, "")), body)
    assert response.status_code in {200, 201}, response.content


@each("slash", ["", "/"])
@each("kind_of_key", OWNER_KINDS)
@each(("method", "path"), sorted(TABLE.keys() - MANAGEMENT))
def test_an_owners_key_has_access_to_its_workspace(alice: Account, objects, method, path, kind_of_key, slash):
    body, kind = TABLE[method, path]
    owner_api = api_of_kind(kind_of_key, alice.workspace)
    response = call(owner_api, method, path_of(path, objects["workspace"], objects.get(kind, "")) + slash, body)
    assert response.status_code in {200, 201}, response.content


@each("kind_of_key", OWNER_KINDS)
def test_an_owners_key_has_no_access_to_the_operations_of_management(alice: Account, objects, kind_of_key):
    owner_api = api_of_kind(kind_of_key, alice.workspace)
    before = all_rows()
    for method, path in MANAGEMENT:
        response = call(owner_api, method, path_of(path, objects["workspace"]), TABLE[method, path][0])
        assert code_of(response) == (403, "insufficient_scope"), (method, path)
    assert all_rows() == before


@each("kind_of_key", OTHER_KINDS)
def test_other_api_keys_have_no_access(alice: Account, bob: Account, objects, kind_of_key):
    api = api_of_kind(kind_of_key, alice.workspace)
    before = all_rows()
    for method, path in TABLE.keys() - FOR_OTHER_SCOPES:
        body, kind = TABLE[method, path]
        responses = [
            call(api, method, path_of(path, workspace, objects.get(kind, "")), body)
            for workspace in (objects["workspace"], bob.workspace.id, f"ws_{UNKNOWN}", "nonsense")
        ]
        assert {code_of(one) for one in responses} == {(403, "insufficient_scope")}, (method, path)
        assert len({one.json()["detail"] for one in responses}) == 1
    assert all_rows() == before


@each(("method", "path"), sorted(TABLE))
def test_without_a_key_nothing_is_accessible(objects, method, path):
    body, kind = TABLE[method, path]
    response = call(Api(), method, path_of(path, objects["workspace"], objects.get(kind, "")), body)
    assert (response.status_code, response.json()["code"]) == (401, "missing_api_key")


@each("path", sorted({path for _, path in TABLE}))
def test_options_describes_each_path(platform: Api, objects, path):
    response = platform.raw("OPTIONS", path_of(path, objects["workspace"], objects["key"]), b"")
    assert response.status_code in {200, 404}


@each("kind_of_key", ["group", *OWNER_KINDS])
@each(("method", "path"), WITH_ID)
def test_a_foreign_workspace_is_answered_like_an_unknown_one(objects, bob: Account, method, path, kind_of_key):
    foreign = management_api("other") if kind_of_key == "group" else api_of_kind(kind_of_key, bob.workspace)
    if kind_of_key in OWNER_KINDS and (method, path) in MANAGEMENT:
        return
    body, kind = TABLE[method, path]
    authentication.cache.clear()
    before = all_rows()
    unknown = call(foreign, method, path_of(path, f"ws_{UNKNOWN}", objects.get(kind, "")), body)
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    for workspace in (objects["workspace"], "nonsense", "%00", "null", "-1", "é"):
        response = call(foreign, method, path_of(path, workspace, objects.get(kind, "")), body)
        assert response.status_code == 404, (workspace, response.content)
        assert {**response.json(), "requestId": ""} == {**unknown.json(), "requestId": ""}
    assert all_rows() == before


@each("kind_of_key", OWNER_KINDS)
@each(("method", "path"), [operation for operation in WITH_ID if TABLE[operation][1]])
def test_an_object_of_another_workspace_is_not_found_within_the_own_one(
    bob: Account, objects, method, path, kind_of_key
):
    api = api_of_kind(kind_of_key, bob.workspace)
    body, kind = TABLE[method, path]
    foreign = "alice@alice.example" if kind == "member" else objects[kind]
    before = all_rows()
    for object_id in (foreign, "nonsense", f"key_{UNKNOWN}", "%00"):
        response = call(api, method, path_of(path, bob.workspace.id, object_id), body)
        assert (response.status_code, response.json()["code"]) == (404, "not_found"), object_id
    assert all_rows() == before
