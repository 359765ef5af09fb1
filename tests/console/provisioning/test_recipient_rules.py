"""Recipient rules of workspaces and API keys in the management API and in `GET /v1/me` (docs/decisions/0388)."""

import json

import pytest
from django.core.management import CommandError, call_command

from core.workspaces.api import authentication
from core.workspaces.models import ApiKey, AuditEntry
from tests.conftest import Api, code_of, field_codes, mail, make_account, make_domain, make_key
from tests.rows import each

pytestmark = pytest.mark.django_db

RULES = {"allow": ["Ada@Example.com", "@Example.org"], "otherwise": "redirect", "redirectTo": "QA@example.org"}
STORED = {"allow": ["ada@example.com", "@example.org"], "otherwise": "redirect", "redirectTo": "QA@example.org"}


@pytest.fixture
def key_path(alice) -> str:
    make_domain(alice.workspace, "alice.example")
    make_key(alice.workspace, "sending_access")
    key = ApiKey.objects.get(scope="sending_access")
    return f"/admin/workspaces/{alice.workspace.id}/api-keys/{key.id}"


@pytest.fixture
def workspace_path(alice) -> str:
    make_domain(alice.workspace, "alice.example")
    return f"/admin/workspaces/{alice.workspace.id}"


@pytest.mark.parametrize("path", ["workspace_path", "key_path"])
def test_rules_are_set_shown_and_removed(owner_api: Api, request, path):
    path = request.getfixturevalue(path)
    set_ = owner_api.patch(path, {"recipientRules": RULES})
    assert (set_.status_code, set_.json()["recipientRules"]) == (200, STORED)
    removed = owner_api.patch(path, {"recipientRules": None}).json()
    assert "recipientRules" not in removed
    acts = AuditEntry.objects.filter(act="rules_changed").order_by("id")
    assert [one.about.rpartition(": ")[2] for one in acts] == ["redirect", "removed"]
    assert owner_api.patch(path, {"recipientRules": None}).status_code == 200
    assert acts.count() == 2


def test_a_request_obeys_within_a_second(owner_api: Api, alice, workspace_path):
    api = Api(make_key(alice.workspace))
    owner_api.patch(workspace_path, {"recipientRules": {"allow": ["@example.org"]}})
    authentication.cache.clear()
    assert code_of(api.post("/emails/send", mail())) == (403, "recipient_not_allowed")
    assert api.get("/me").json()["workspace"]["recipientRules"] == {"allow": ["@example.org"], "otherwise": "refuse"}


def test_a_new_key_has_rules_and_shows_them(owner_api: Api, alice):
    body = {"name": "Staging", "scope": "sending_only", "recipientRules": {"allow": [], "otherwise": "capture"}}
    made = owner_api.post(f"/admin/workspaces/{alice.workspace.id}/api-keys", body).json()
    assert made["recipientRules"] == {"allow": [], "otherwise": "capture"}
    me = Api(made["key"]).get("/me").json()
    assert me["key"]["recipientRules"] == made["recipientRules"]
    assert "recipientRules" not in me["workspace"]


def test_caps_are_shown_complete(owner_api: Api, workspace_path):
    shown = owner_api.patch(workspace_path, {"recipientRules": {"caps": [{"count": 5, "seconds": 3600}]}}).json()
    cap = {"count": 5, "seconds": 3600, "per": "recipient", "exceeding": "refuse"}
    assert shown["recipientRules"] == {"otherwise": "refuse", "caps": [cap]}


def test_a_new_workspace_has_rules(platform: Api):
    made = platform.post("/admin/workspaces", {"name": "Staging", "recipientRules": {"allow": ["@example.org"]}})
    assert made.json()["recipientRules"] == {"allow": ["@example.org"], "otherwise": "refuse"}


@each(
    ("rules", "codes"),
    [
        ({}, {"recipientRules.allow": "required"}),
        ({"allow": "ada@example.com"}, {"recipientRules.allow": "invalid_type"}),
        ({"allow": ["nobody"]}, {"recipientRules.allow[0]": "invalid_entry"}),
        ({"allow": ["@example.org"] * 201}, {"recipientRules.allow": "max_length"}),
        ({"allow": [], "otherwise": "drop"}, {"recipientRules.otherwise": "invalid_choice"}),
        ({"allow": [], "otherwise": "redirect"}, {"recipientRules.redirectTo": "required"}),
        ({"allow": [], "redirectTo": "qa@example.org"}, {"recipientRules.redirectTo": "invalid"}),
        ({"caps": []}, {"recipientRules.allow": "required"}),
        ({"caps": [{"count": 0, "seconds": 60}]}, {"recipientRules.caps[0].count": "min_value"}),
        ({"caps": [{"count": 101, "seconds": 60}]}, {"recipientRules.caps[0].count": "max_value"}),
        ({"caps": [{"count": 1}]}, {"recipientRules.caps[0].seconds": "required"}),
        ({"caps": [{"count": 1, "seconds": 60, "per": "day"}]}, {"recipientRules.caps[0].per": "invalid_choice"}),
        ({"caps": [{"count": 1, "seconds": 60}] * 4}, {"recipientRules.caps": "max_length"}),
        ({"allow": [], "redirect": "qa@example.org"}, {"recipientRules.redirect": "unknown_field"}),
    ],
)
def test_invalid_rules_are_refused(owner_api: Api, workspace_path, rules, codes):
    assert field_codes(owner_api.patch(workspace_path, {"recipientRules": rules})) == codes
    checked = owner_api.post("/admin/configuration/check", {"recipientRules": rules})
    assert field_codes(checked) == codes


def test_a_key_that_manages_the_workspace_has_no_rules(owner_api: Api, alice):
    path = f"/admin/workspaces/{alice.workspace.id}/api-keys"
    body = {"name": "Admin", "scope": "workspace_admin", "recipientRules": {"allow": []}}
    assert field_codes(owner_api.post(path, body)) == {"recipientRules": "requires_other_scope"}
    own = ApiKey.objects.get(scope="workspace_admin")
    refused = owner_api.patch(f"{path}/{own.id}", {"recipientRules": {"allow": []}})
    assert field_codes(refused) == {"recipientRules": "requires_other_scope"}
    assert field_codes(owner_api.patch(f"{path}/{own.id}", {})) == {"recipientRules": "required"}


def test_keys_of_others_are_not_found(owner_api: Api, alice):
    bob = make_account("bob")
    make_key(bob.workspace)
    key = ApiKey.objects.get(workspace=bob.workspace)
    body = {"recipientRules": {"allow": []}}
    for path in (f"{alice.workspace.id}/api-keys/{key.id}", f"{bob.workspace.id}/api-keys/{key.id}", bob.workspace.id):
        assert code_of(owner_api.patch(f"/admin/workspaces/{path}", body)) == (404, "not_found")
    sending = Api(make_key(alice.workspace, "full_access"))
    assert sending.patch(f"/admin/workspaces/{alice.workspace.id}", body).status_code == 403


def test_the_operator_creates_a_key_with_rules(alice):
    command = ["create_api_key", "--workspace", alice.workspace.id, "--name", "Staging", "--scope", "sending_access"]
    call_command(*command, "--recipient-rules", json.dumps(RULES))
    assert ApiKey.objects.get().recipient_rules == STORED
    for text in ("{", '{"allow": ["nobody"]}'):
        with pytest.raises(CommandError, match="--recipient-rules"):
            call_command(*command, "--recipient-rules", text)
    assert ApiKey.objects.count() == 1
