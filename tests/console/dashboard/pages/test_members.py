from datetime import UTC, datetime

import pytest
from django.utils.html import escape

from core.workspaces.audit import AuditAction, record_action
from core.workspaces.models import AuditEntry, Invitation, Membership, User, Workspace
from tests.conftest import PASSWORD
from tests.console.dashboard.conftest import shown_text, signed_in
from tests.console.dashboard.hostile import STRINGS
from tests.console.dashboard.scenario import add_member

MEMBERS = "/dashboard/members/"


@pytest.fixture
def member(alice, db):
    """A browser signed in as a member, not an owner, of Alice's workspace."""
    user = User.objects.create_user(email="mem@alice.example", password=PASSWORD)
    Membership.objects.create(workspace=alice.workspace, user=user, role="member")
    return signed_in(user)


def membership(email: str) -> Membership:
    return Membership.objects.get(user__email=email)


def test_every_member_sees_the_members(owner, member):
    for client in (owner, member):
        assert b"mem@alice.example" in client.get(MEMBERS).content


def test_owners_see_when_members_signed_in_and_whether_they_have_a_second_factor(owner, member, alice):
    User.objects.filter(email="mem@alice.example").update(
        last_login=datetime(2026, 11, 3, 10, 0, tzinfo=UTC), second_factor_at=datetime(2026, 11, 1, tzinfo=UTC)
    )
    User.objects.filter(email=alice.owner.email).update(last_login=None)
    page = shown_text(owner.get("/dashboard/members/"))
    for text in ("two-factor", "last sign-in 3 Nov 2026", "no second factor", "never signed in"):
        assert text in page, text
    other = signed_in(add_member(alice.workspace).user)
    page = shown_text(other.get("/dashboard/members/"))
    assert "two-factor" in page
    assert "sign-in" not in page
    assert "second factor" not in page


def test_a_role_is_changed(owner, member):
    path = f"{MEMBERS}{membership('mem@alice.example').pk}/role/"

    assert owner.get(path).status_code == 200
    assert owner.post(path, {"role": "owner"}).url == MEMBERS
    assert membership("mem@alice.example").role == "owner"
    assert owner.post(path, {"role": "emperor"}).status_code == 200


def test_a_member_who_is_removed_or_leaves_loses_access_immediately(owner, member, alice):
    user = membership("mem@alice.example").user
    paths = (f"{MEMBERS}{membership('mem@alice.example').pk}/remove/", f"{MEMBERS}leave/")
    for client, path in zip((owner, member), paths, strict=True):
        Membership.objects.get_or_create(workspace=alice.workspace, user=user)
        assert client.get(path).status_code == 200
        assert member.get("/dashboard/").status_code == 200
        client.post(path)
        assert member.get("/dashboard/").status_code == 302
    assert alice.workspace.memberships.count() == 1


def test_the_last_owner_cannot_be_removed(owner, alice):
    pk = alice.workspace.memberships.get().pk
    for path, body in ((f"{pk}/role/", {"role": "member"}), (f"{pk}/remove/", {}), ("leave/", {})):
        page = owner.post(f"{MEMBERS}{path}", body, follow=True)
        assert b"must have at least one owner" in page.content
    assert alice.workspace.memberships.get().role == "owner"


def test_only_owners_manage_members(member):
    pk = membership("mem@alice.example").pk
    for path, body in {
        "invite/": {"email": "x@example.com", "role": "owner"},
        "withdraw/": {"invitation": "inv_x"},
        f"{pk}/role/": {"role": "owner"},
        f"{pk}/remove/": {},
    }.items():
        assert member.post(MEMBERS + path, body).status_code == 403, path
    assert membership("mem@alice.example").role == "member"
    assert not Invitation.objects.exists()


def test_the_audit_log_is_for_owners(owner, member):
    assert owner.get("/dashboard/audit/").status_code == 200
    assert b"Audit log" in owner.get(MEMBERS).content
    assert member.get("/dashboard/audit/").status_code == 403
    assert b"Audit log" not in member.get(MEMBERS).content


def test_an_owner_elsewhere_is_a_member_here(alice, bob):
    Membership.objects.create(workspace=alice.workspace, user=bob.owner, role="member")
    client = signed_in(bob.owner)
    client.post("/dashboard/workspace/", {"workspace": alice.workspace.id})

    assert client.post(f"{MEMBERS}invite/", {"email": "x@example.com", "role": "owner"}).status_code == 403


def test_an_invitation_is_withdrawn_by_its_workspace_alone(owner, bob):
    owner.post(f"{MEMBERS}invite/", {"email": "x@example.com", "role": "member"})
    invitation = Invitation.objects.get()

    assert signed_in(bob.owner).post(f"{MEMBERS}withdraw/", {"invitation": invitation.id}).status_code == 404
    assert owner.post(f"{MEMBERS}withdraw/", {"invitation": "nothing"}).status_code == 404
    assert owner.post(f"{MEMBERS}withdraw/", {"invitation": invitation.id}).url == MEMBERS
    assert not Invitation.objects.exists()


def test_the_audit_log_of_the_workspace_shows_actor_and_address(owner, alice, bob):
    record_action(bob.workspace, AuditAction.PLAN_CHANGED, about="to-the-moon")
    owner.post("/dashboard/keys/add/", {"name": "Shop", "scope": "read_only"}, REMOTE_ADDR="192.0.2.7")

    page = owner.get("/dashboard/audit/").content.decode()

    for text in ("API key created", "Shop (pr_…", "alice@alice.example", "192.0.2.7"):
        assert text in page
    assert "to-the-moon" not in page + owner.get("/dashboard/audit/?workspace__name=bob").text


def test_staff_are_not_identified_to_owners(owner, alice, staff):
    AuditEntry.objects.create(
        workspace=alice.workspace,
        act="plan_changed",
        actor_kind="staff",
        actor="staff@postrider.example",
        address="192.0.2.9",
    )

    page = owner.get("/dashboard/audit/").content.decode()

    assert "Postrider staff" in page
    assert "staff@postrider.example" not in page
    assert "192.0.2.9" not in page
    assert "staff@postrider.example" in staff.get("/admin/workspaces/auditentry/").content.decode()


def test_hostile_names_are_escaped(owner, alice):
    for name in STRINGS:
        record_action(alice.workspace, AuditAction.KEY_CREATED, about=name[:60])
    audit = owner.get("/dashboard/audit/").content.decode() + owner.get("/dashboard/audit/?p=2").content.decode()
    for name in STRINGS[::5]:
        Workspace.objects.filter(id=alice.workspace.id).update(name=name)
        page = owner.get(f"{MEMBERS}leave/").text + owner.get("/dashboard/").text
        assert (escape(name) in page, "<" in name and name in page) == (True, False), name
    assert [name for name in STRINGS if escape(name[:60]) not in audit or ("<" in name and name in audit)] == []
