"""Roles that follow the claims of an identity provider."""

import pytest

from console.system_mail.models import SystemMail
from core.workspaces.access_rules import ClaimedAccess, Grants
from core.workspaces.identities import ClaimsNotSent, apply_grants
from core.workspaces.members import accept_invitation, change_role, invite_member, remove_member
from core.workspaces.models import AuditEntry, Membership, User
from tests.rows import each


@pytest.fixture
def grace(db):
    return User.objects.create_user(email="grace@example.com", password=None)


def grant(user, workspace, role="", *, possible=""):
    roles = {workspace.id: role} if role else {}
    unsent = frozenset({"groups"}) if possible else frozenset()
    apply_grants(
        user,
        Grants(ClaimedAccess(roles=roles), unsent, ClaimedAccess(roles={workspace.id: possible} if possible else {})),
    )


def roles(user) -> list[str]:
    return [*user.memberships.values_list("role", flat=True)]


def test_a_role_begins_and_ends_with_the_claim(grace, alice):
    for role in ("member", "owner", "member"):
        grant(grace, alice.workspace, role)
        assert roles(grace) == [role]
    grant(grace, alice.workspace)

    assert roles(grace) == []
    acts = AuditEntry.objects.filter(workspace=alice.workspace, about__contains="grace").order_by("id")
    assert [entry.act for entry in acts] == ["member_joined", "member_role", "member_role", "member_removed"]


def test_a_role_by_invitation_stays(grace, alice):
    accept_invitation(invite_member(alice.workspace, email=grace.email, role="member", by=None), user=grace)
    grant(grace, alice.workspace, "owner")
    assert roles(grace) == ["owner"]

    grant(grace, alice.workspace)
    assert roles(grace) == ["member"]
    grant(grace, alice.workspace)
    assert roles(grace) == ["member"]


def test_the_higher_role_wins(grace, alice):
    accept_invitation(invite_member(alice.workspace, email=grace.email, role="owner", by=None), user=grace)
    grant(grace, alice.workspace, "member")
    assert roles(grace) == ["owner"]


def test_an_invitation_of_a_member_by_claims_stays(grace, alice):
    invitation = invite_member(alice.workspace, email=grace.email, role="owner", by=None)
    grant(grace, alice.workspace, "member")
    accept_invitation(invitation, user=grace)
    assert roles(grace) == ["owner"]

    grant(grace, alice.workspace)
    assert roles(grace) == ["owner"]


def test_a_role_that_an_owner_changes_lasts_until_the_next_sign_in(grace, alice):
    grant(grace, alice.workspace, "owner")
    change_role(grace.memberships.get(), role="member")
    assert roles(grace) == ["member"]

    grant(grace, alice.workspace, "owner")
    assert roles(grace) == ["owner"]
    grant(grace, alice.workspace)
    assert roles(grace) == ["member"]


def test_a_removed_member_returns_with_the_claim(grace, alice):
    grant(grace, alice.workspace, "member")
    remove_member(grace.memberships.get())
    grant(grace, alice.workspace, "member")
    assert roles(grace) == ["member"]


@each("next_role", ["", "member"])
def test_the_last_owner_stays_and_the_staff_are_told_once_a_day(grace, alice, next_role):
    User.objects.create_superuser("staff@postrider.example", "correct horse battery")
    grant(grace, alice.workspace, "owner")
    Membership.objects.filter(user=alice.owner).delete()

    for _ in range(2):
        grant(grace, alice.workspace, next_role)
        assert roles(grace) == ["owner"]
    mail = SystemMail.objects.get(recipient="staff@postrider.example")
    assert "grace@example.com" in mail.text
    assert AuditEntry.objects.filter(workspace=alice.workspace, act="member_last_owner").count() == 1

    # With another owner, the role follows the claim.
    Membership.objects.create(workspace=alice.workspace, user=alice.owner, role="owner")
    grant(grace, alice.workspace, next_role)
    assert roles(grace) == ([next_role] if next_role else [])


def test_the_role_in_another_workspace_ends_although_an_owner_is_kept(grace, alice, bob):
    for account in (alice, bob):
        Membership.objects.filter(user=account.owner).delete()
    both = {alice.workspace.id: "owner", bob.workspace.id: "owner"}
    apply_grants(grace, Grants(ClaimedAccess(roles=both)))
    Membership.objects.create(workspace=bob.workspace, user=bob.owner, role="owner")

    apply_grants(grace, Grants(ClaimedAccess()))

    assert [row.workspace for row in grace.memberships.all()] == [alice.workspace]


class TestClaimsThatWereNotSent:
    """An absent claim says nothing; an empty one takes the roles away."""

    def test_a_role_that_may_depend_on_one_is_neither_taken_away_nor_used(self, grace, alice):
        grant(grace, alice.workspace, "member")
        with pytest.raises(ClaimsNotSent, match="groups"):
            grant(grace, alice.workspace, possible="member")
        assert roles(grace) == ["member"]

    def test_a_lower_role_by_another_claim_is_no_reason_to_lower_it(self, grace, alice):
        grant(grace, alice.workspace, "owner")
        with pytest.raises(ClaimsNotSent):
            grant(grace, alice.workspace, "member", possible="owner")
        assert roles(grace) == ["owner"]

    def test_a_role_that_could_not_come_from_it_is_taken_away(self, grace, alice, bob):
        grant(grace, alice.workspace, "member")
        grant(grace, bob.workspace, possible="member")
        assert roles(grace) == []

    def test_it_does_not_concern_people_whose_roles_are_by_invitation(self, grace, alice):
        accept_invitation(invite_member(alice.workspace, email=grace.email, role="member", by=None), user=grace)
        grant(grace, alice.workspace, possible="owner")
        assert roles(grace) == ["member"]

    def test_staff_by_claims_stay_staff_but_do_not_sign_in(self, grace):
        apply_grants(grace, Grants(ClaimedAccess(is_staff=True)))
        with pytest.raises(ClaimsNotSent):
            apply_grants(grace, Grants(ClaimedAccess(), frozenset({"groups"}), ClaimedAccess(is_staff=True)))
        grace.refresh_from_db()
        assert grace.is_staff
