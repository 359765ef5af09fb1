from datetime import timedelta

import pytest
from django.db.models.functions import Now

from core.workspaces.members import (
    AlreadyMember,
    InvalidInvitation,
    LastOwner,
    NotInvited,
    TooManyInvitations,
    accept_invitation,
    change_role,
    expired_invitations,
    find_invitation,
    invitation_token,
    invite_member,
    leave_workspace,
    remove_member,
    sign_up_invited,
    withdraw_invitation,
)
from core.workspaces.models import AuditEntry, Invitation, Membership, User
from tests.conftest import PASSWORD, make_account
from tests.rows import each
from tests.threads import run_concurrently


def invite(account, email="new@example.com", role="member"):
    return invite_member(account.workspace, email=email, role=role, by=account.owner)


def actions(workspace) -> list[str]:
    return list(AuditEntry.objects.filter(workspace=workspace).order_by("id").values_list("act", flat=True))


@pytest.mark.django_db
class TestInvitations:
    def test_an_account_joins_with_the_invited_role(self, alice, bob):
        found = find_invitation(invitation_token(invite(alice, bob.owner.email, "owner")))

        membership = accept_invitation(found, user=bob.owner)

        assert (membership.workspace, membership.role) == (alice.workspace, "owner")
        assert actions(alice.workspace)[-2:] == ["member_invited", "member_joined"]

    def test_a_link_works_once(self, alice, bob):
        token = invitation_token(invite(alice, bob.owner.email))
        accept_invitation(find_invitation(token), user=bob.owner)

        with pytest.raises(InvalidInvitation):
            find_invitation(token)

    def test_a_used_invitation_is_invalid_for_an_earlier_reader(self, alice, bob):
        token = invitation_token(invite(alice, bob.owner.email))
        early = find_invitation(token)
        accept_invitation(find_invitation(token), user=bob.owner)

        with pytest.raises(InvalidInvitation):
            accept_invitation(early, user=bob.owner)

    def test_a_link_works_for_seven_days(self, alice):
        invitation = invite(alice)
        token = invitation_token(invitation)

        Invitation.objects.update(expires_at=Now() + timedelta(seconds=5))
        assert find_invitation(token) == invitation
        Invitation.objects.update(expires_at=Now() - timedelta(seconds=1))

        with pytest.raises(InvalidInvitation):
            find_invitation(token)
        assert expired_invitations().count() == 1

    def test_it_expires_seven_days_after_creation(self, alice):
        invite(alice)

        invitation = Invitation.objects.get()

        assert invitation.expires_at - invitation.created_at == timedelta(days=7)

    def test_an_account_with_another_address_cannot_accept_it(self, alice, bob):
        with pytest.raises(NotInvited):
            accept_invitation(invite(alice), user=bob.owner)
        assert Invitation.objects.count() == 1

    def test_a_new_user_gets_an_account(self, alice):
        user = sign_up_invited(invite(alice), password=PASSWORD)

        assert user.email == "new@example.com"
        assert user.check_password(PASSWORD)
        assert user.memberships.get().workspace == alice.workspace

    def test_the_actor_of_joining_by_link_is_the_new_member(self, alice, client, rf):
        from django.contrib.auth.models import AnonymousUser

        from core.workspaces.audit import AuditMiddleware

        request, invitation = rf.post("/", REMOTE_ADDR="192.0.2.7"), invite(alice)
        request.user = AnonymousUser()
        AuditMiddleware(lambda _: sign_up_invited(invitation, password=PASSWORD))(request)

        entry = AuditEntry.objects.latest("id")
        assert (entry.act, entry.actor, entry.address) == ("member_joined", "new@example.com", "192.0.2.7")

    def test_a_withdrawn_link_creates_no_account(self, alice):
        invitation = invite(alice)
        withdraw_invitation(invitation)

        with pytest.raises(InvalidInvitation):
            sign_up_invited(invitation, password=PASSWORD)
        assert not User.objects.filter(email="new@example.com").exists()

    def test_inviting_again_invalidates_the_first_link(self, alice):
        first = invitation_token(invite(alice))
        invite(alice)

        with pytest.raises(InvalidInvitation):
            find_invitation(first)
        assert Invitation.objects.count() == 1

    def test_a_member_is_not_invited(self, alice):
        with pytest.raises(AlreadyMember):
            invite(alice, alice.owner.email)

    def test_a_hundred_may_be_open(self, alice):
        rows = [
            Invitation(workspace=alice.workspace, email=f"{n}@example.com", expires_at=Now() + timedelta(days=1))
            for n in range(99)
        ]
        Invitation.objects.bulk_create(rows)
        invite(alice, "hundredth@example.com")

        with pytest.raises(TooManyInvitations):
            invite(alice, "one-too-many@example.com")

    @each("token", ["", "x", "é", "A" * 500, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"])
    def test_an_invalid_token_is_refused(self, db, token):
        with pytest.raises(InvalidInvitation):
            find_invitation(token)


@pytest.mark.django_db
class TestTheLastOwner:
    def test_cannot_leave_be_removed_or_demoted(self, alice):
        membership = alice.workspace.memberships.get()

        for action in (leave_workspace, remove_member, lambda one: change_role(one, role="member")):
            with pytest.raises(LastOwner):
                action(membership)
        assert alice.workspace.memberships.get().role == "owner"

    def test_can_leave_if_there_is_another_owner(self, alice, bob):
        Membership.objects.create(workspace=alice.workspace, user=bob.owner, role="owner")

        leave_workspace(alice.workspace.memberships.get(user=alice.owner))

        assert alice.workspace.memberships.get().user == bob.owner

    def test_a_member_does_not_count(self, alice, bob):
        Membership.objects.create(workspace=alice.workspace, user=bob.owner, role="member")

        with pytest.raises(LastOwner):
            leave_workspace(alice.workspace.memberships.get(user=alice.owner))

    def test_a_role_changes_both_ways(self, alice, bob):
        member = Membership.objects.create(workspace=alice.workspace, user=bob.owner, role="member")
        change_role(member, role="owner")
        member.refresh_from_db()
        assert member.role == "owner"

        change_role(member, role="member")
        change_role(member, role="member")

        assert actions(alice.workspace).count("member_role") == 2


@pytest.mark.django_db(transaction=True)
def test_one_of_two_owners_who_leave_concurrently_stays():
    alice, bob = make_account("alice"), make_account("bob")
    Membership.objects.create(workspace=alice.workspace, user=bob.owner, role="owner")

    def is_refused(membership):
        try:
            leave_workspace(membership)
        except LastOwner:
            return True
        return False

    assert sorted(run_concurrently(is_refused, alice.workspace.memberships.all())) == [False, True]
    assert alice.workspace.memberships.count() == 1
