"""The management API: workspaces, and the keys, members, invitations, usage and audit log of each."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command

from console.provisioning.models import ManagementKey
from console.provisioning.services import issue_management_key, revoke_management_key
from console.system_mail.models import SystemMail
from core.lib.token_bucket import RateLimit
from core.workspaces.api import authentication, throttling
from core.workspaces.members import invite_member, sign_up_invited
from core.workspaces.models import ApiKey, AuditEntry, Invitation, Membership, Workspace
from tests.conftest import Api, code_of, field_codes, mail, make_domain, make_key
from tests.core.api.test_openapi import schema_errors
from tests.rows import each

pytestmark = pytest.mark.django_db


def created(platform: Api, **fields) -> dict:
    response = platform.post("/admin/workspaces", {"name": "Shop", **fields})
    assert response.status_code == 201, response.content
    return response.json()


class TestWorkspaces:
    def test_a_workspace_is_created_with_a_key_that_sends(self, platform: Api):
        workspace = created(platform, plan="pro")
        assert (workspace["name"], workspace["plan"], workspace["group"]) == ("Shop", "pro", "")
        response = platform.post(
            f"/admin/workspaces/{workspace['id']}/api-keys", {"name": "Website", "scope": "sending_access"}
        )
        assert response.status_code == 201
        make_domain(Workspace.objects.get(), "alice.example")
        assert Api(response.json()["key"]).post("/emails/send", mail()).status_code == 202

    def test_the_default_plan_is_used(self, platform: Api, settings):
        settings.DEFAULT_PLAN = "free"
        assert created(platform)["plan"] == "free"

    def test_workspaces_are_listed_newest_first(self, platform: Api):
        ids = [created(platform, name=name)["id"] for name in ("A", "B", "C")]
        page = platform.get("/admin/workspaces", {"limit": 2}).json()
        assert page["total"] == 3
        assert {one["id"] for one in page["data"]} < {*ids}

    def test_name_and_plan_are_changed(self, platform: Api):
        path = f"/admin/workspaces/{created(platform)['id']}"
        changed = platform.patch(path, {"name": "Store", "plan": "enterprise"}).json()
        assert (changed["name"], changed["plan"]) == ("Store", "enterprise")
        assert platform.get(path).json() == changed
        actions = AuditEntry.objects.values_list("act", "actor")
        label = f"platform (pra_…{ManagementKey.objects.get().last_four})"
        assert {*actions} == {(act, label) for act in ("workspace_created", "workspace_renamed", "plan_changed")}

    def test_a_suspended_workspace_cannot_send_until_it_is_resumed(self, platform: Api, api: Api, alice):
        path = f"/admin/workspaces/{alice.workspace.id}"
        suspended = platform.post(f"{path}/suspend", {"reason": "unpaid"}).json()
        assert suspended["suspendedReason"] == "unpaid"
        authentication.cache.clear()
        assert code_of(api.post("/emails/send", mail())) == (403, "workspace_suspended")
        assert platform.post(f"{path}/resume").json()["suspendedAt"] is None
        authentication.cache.clear()
        assert api.post("/emails/send", mail()).status_code == 202

    @each(
        ("body", "fields"),
        [
            ({}, {"name": "required"}),
            ({"name": ""}, {"name": "blank"}),
            ({"name": " "}, {"name": "blank"}),
            ({"name": "x" * 101}, {"name": "max_length"}),
            ({"name": "a\nb"}, {"name": "invalid"}),
            ({"name": 7}, {"name": "invalid"}),
            ({"name": "x", "plan": "gold"}, {"plan": "invalid_choice"}),
            ({"name": "x", "ownerEmail": "nobody"}, {"ownerEmail": "invalid_email"}),
            ({"name": "x", "owner": "a@b.example"}, {"owner": "unknown_field"}),
        ],
    )
    def test_invalid_fields_are_refused(self, platform: Api, body, fields):
        assert field_codes(platform.post("/admin/workspaces", body)) == fields

    def test_the_owner_is_invited_by_email(self, platform: Api):
        workspace = created(platform, ownerEmail="Ada@Example.com")
        invitation = Invitation.objects.get()
        assert (invitation.workspace_id, invitation.email, invitation.role) == (
            workspace["id"], "ada@example.com", "owner",
        )  # fmt: skip
        assert SystemMail.objects.get().recipient == "ada@example.com"

    def test_usage_has_the_quota_and_twelve_months(self, platform: Api, api: Api, alice):
        api.post("/emails/send", mail())
        usage = platform.get(f"/admin/workspaces/{alice.workspace.id}/usage").json()
        assert usage["quota"]["used"] == 1
        assert [month["used"] for month in usage["months"]] == [0] * 11 + [1]


class TestGroups:
    def test_a_key_of_a_group_manages_only_its_workspaces(self, platform: Api, reseller: Api):
        other, own = created(platform), created(reseller)
        assert own["group"] == "resold"
        assert [one["id"] for one in reseller.get("/admin/workspaces").json()["data"]] == [own["id"]]
        assert code_of(reseller.get(f"/admin/workspaces/{other['id']}")) == (404, "not_found")
        assert platform.get("/admin/workspaces").json()["total"] == 2

    def test_a_key_of_a_group_creates_no_workspace_in_another_group(self, platform: Api, reseller: Api):
        body = {"name": "x", "group": "others"}
        assert field_codes(reseller.post("/admin/workspaces", body)) == {"group": "foreign_group"}
        assert created(platform, group="resold")["id"] in str(reseller.get("/admin/workspaces").json())


class TestKeys:
    def test_a_key_is_shown_once_and_revoked(self, platform: Api, alice):
        path = f"/admin/workspaces/{alice.workspace.id}/api-keys"
        made = platform.post(path, {"name": "Website", "scope": "read_only"}).json()
        assert Api(made["key"]).get("/me").status_code == 200
        (listed,) = platform.get(path).json()["data"]
        assert "key" not in listed
        assert listed["lastFour"] == made["key"][-4:]
        assert made["key"] not in str([*ApiKey.objects.values(), *AuditEntry.objects.values()])
        assert platform.delete(f"{path}/{made['id']}").json()["revokedAt"]
        authentication.cache.clear()
        assert code_of(Api(made["key"]).get("/me")) == (401, "revoked_api_key")

    @each(
        ("expires_at", "code"),
        [
            ("tomorrow", "invalid"),
            ("2020-01-01T00:00:00Z", "in_past"),
            ("9999-12-31T23:59:59-12:00", "invalid"),
            (7, "invalid"),
        ],
    )
    def test_an_invalid_expiry_is_refused(self, platform: Api, alice, expires_at, code):
        path = f"/admin/workspaces/{alice.workspace.id}/api-keys"
        body = {"name": "x", "scope": "read_only", "expiresAt": expires_at}
        assert field_codes(platform.post(path, body)) == {"expiresAt": code}

    def test_a_key_creates_no_key_that_outlives_it(self, alice):
        soon = datetime.now(UTC) + timedelta(hours=1)
        owner_api = Api(make_key(alice.workspace, "workspace_admin", expires_at=soon))
        path = f"/admin/workspaces/{alice.workspace.id}/api-keys"
        body = {"name": "x", "scope": "read_only"}
        assert field_codes(owner_api.post(path, body)) == {"expiresAt": "too_late"}
        later = (soon + timedelta(seconds=1)).isoformat()
        assert field_codes(owner_api.post(path, {**body, "expiresAt": later})) == {"expiresAt": "too_late"}
        assert owner_api.post(path, {**body, "expiresAt": soon.isoformat()}).status_code == 201

    def test_the_command_prints_a_key_once(self, capsys, db):
        call_command("create_management_key", name="platform", group="resold", expires="2099-01-01")
        printed = json.loads(capsys.readouterr().out)
        key = ManagementKey.objects.get(id=printed["id"])
        assert printed["key"].startswith("pra_")
        assert (key.group, key.expires_at.year) == ("resold", 2099)
        assert printed["key"] not in str(ManagementKey.objects.values())

    @each("option", ["name", "group"])
    def test_the_command_explains_a_name_that_is_too_long(self, db, option):
        with pytest.raises(CommandError, match="no more than 100 characters"):
            call_command("create_management_key", "--name", "platform", f"--{option}", "x" * 101)


class TestMembers:
    def test_members_are_invited_changed_and_removed(self, platform: Api):
        path = f"/admin/workspaces/{created(platform, ownerEmail='ada@example.com')['id']}"
        sign_up_invited(Invitation.objects.get(), password="long enough words")
        made = platform.post(f"{path}/invitations", {"email": "grace@example.com"}).json()
        assert made["role"] == "member"
        assert [one["id"] for one in platform.get(f"{path}/invitations").json()["data"]] == [made["id"]]
        sign_up_invited(Invitation.objects.get(), password="long enough words")
        members = platform.get(f"{path}/members").json()["data"]
        assert [(one["email"], one["role"]) for one in members] == [
            ("ada@example.com", "owner"), ("grace@example.com", "member"),
        ]  # fmt: skip
        changed = platform.patch(f"{path}/members/grace@example.com", {"role": "owner"}).json()
        assert changed["role"] == "owner"
        removed = platform.delete(f"{path}/members/ada@example.com").json()
        assert removed == {"email": "ada@example.com", "deleted": True}
        assert Membership.objects.get().user.email == "grace@example.com"

    def test_a_member_is_found_by_the_address_in_any_case(self, platform: Api, alice):
        path = f"/admin/workspaces/{alice.workspace.id}/members/{alice.owner.email.upper()}"
        assert platform.patch(path, {"role": "owner"}).json()["email"] == alice.owner.email

    def test_the_last_owner_stays(self, platform: Api, alice):
        path = f"/admin/workspaces/{alice.workspace.id}/members/{alice.owner.email}"
        assert code_of(platform.patch(path, {"role": "member"})) == (409, "last_owner")

    def test_an_invitation_is_withdrawn(self, platform: Api, alice):
        invitation = invite_member(alice.workspace, email="grace@example.com", role="member", by=alice.owner)
        path = f"/admin/workspaces/{alice.workspace.id}/invitations/{invitation.id}"
        assert platform.delete(path).json() == {"id": invitation.id, "deleted": True}
        assert not Invitation.objects.exists()
        assert code_of(platform.delete(path)) == (404, "not_found")

    def test_invitations_are_throttled(self, platform: Api, alice, monkeypatch):
        monkeypatch.setattr("console.provisioning.throttling.INVITATIONS", RateLimit(per_second=0.001, burst=2))
        path = f"/admin/workspaces/{alice.workspace.id}/invitations"
        codes = [platform.post(path, {"email": f"a{number}@example.com"}).status_code for number in range(3)]
        assert codes == [201, 201, 429]

    def test_a_suspended_workspace_invites_nobody(self, platform: Api, alice):
        path = f"/admin/workspaces/{alice.workspace.id}"
        platform.post(f"{path}/suspend", {"reason": "spam"})
        response = platform.post(f"{path}/invitations", {"email": "a@example.com"})
        assert code_of(response) == (403, "workspace_suspended")


class TestAccess:
    def test_an_owner_manages_the_own_workspace_except_for_plan_and_suspension(self, owner_api: Api, alice):
        path = f"/admin/workspaces/{alice.workspace.id}"
        assert [one["id"] for one in owner_api.get("/admin/workspaces").json()["data"]] == [alice.workspace.id]
        assert owner_api.patch(path, {"name": "Renamed"}).json()["name"] == "Renamed"
        refused = [
            owner_api.patch(path, {"plan": "free"}),
            owner_api.patch(path, {"name": "Other", "plan": "free"}),
            owner_api.post(f"{path}/suspend", {"reason": "x"}),
        ]
        assert {code_of(one) for one in refused} == {(403, "insufficient_scope")}
        assert {one.json()["requiredScope"] for one in refused} == {"management"}
        assert schema_errors({"$ref": "#/components/schemas/InsufficientScopeProblem"}, refused[0].json()) == []
        assert Workspace.objects.get(id=alice.workspace.id).name == "Renamed"

    def test_a_management_key_works_below_admin_only(self, platform: Api):
        for path in ("/me", "/emails", "/events"):
            refused = platform.get(path)
            assert code_of(refused) == (401, "invalid_api_key")
            assert "works below /v1/admin only" in refused.json()["detail"]

    def test_a_revoked_or_expired_key_is_refused_at_once(self, platform: Api):
        key = ManagementKey.objects.get()
        revoke_management_key(key)
        assert code_of(platform.get("/admin/workspaces")) == (401, "revoked_api_key")
        ManagementKey.objects.update(revoked_at=None, expires_at=datetime.now(UTC))
        assert code_of(platform.get("/admin/workspaces")) == (401, "expired_api_key")

    def test_a_wrong_secret_is_refused_and_failures_are_throttled(self, platform: Api, settings, monkeypatch):
        settings.RATE_LIMIT = (50, 100)
        monkeypatch.setattr(throttling, "FAILURES", RateLimit(per_second=0.001, burst=3))
        _, secret = issue_management_key(name="deleted")
        ManagementKey.objects.filter(name="deleted").delete()
        wrong = Api(secret.text)
        # Another address than in other tests, which share the buckets.
        address = {"REMOTE_ADDR": "198.51.100.77"}
        codes = [wrong.raw("GET", "/admin/workspaces", b"", **address).status_code for _ in range(4)]
        assert codes == [401] * 3 + [429]
        assert platform.get("/admin/workspaces").status_code == 200

    def test_requests_of_a_key_are_limited(self, platform: Api, settings):
        settings.RATE_LIMIT = (0.001, 2)
        responses = [platform.get("/admin/workspaces") for _ in range(3)]
        assert [one.status_code for one in responses] == [200, 200, 429]
        assert responses[0]["RateLimit-Limit"] == "2"

    def test_the_audit_log_names_the_key(self, owner_api: Api, alice):
        path = f"/admin/workspaces/{alice.workspace.id}"
        owner_api.patch(path, {"name": "Renamed"})
        entry = owner_api.get(f"{path}/audit").json()["data"][0]
        assert (entry["action"], entry["about"], entry["actorKind"]) == ("workspace_renamed", "Renamed", "key")
        assert entry["actor"].startswith("test (pr_…")
