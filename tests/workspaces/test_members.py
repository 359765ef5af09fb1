import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from tests.conftest import PASSWORD, make_account
from workspaces.members import (
    AlreadyMember,
    InvitationGone,
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
from workspaces.models import AuditEntry, Invitation, Membership, User


def invite(account, email="new@example.com", role="member"):
    return invite_member(account.workspace, email=email, role=role, by=account.owner)


def acts(workspace) -> list[str]:
    return list(AuditEntry.objects.filter(workspace=workspace).order_by("id").values_list("act", flat=True))


@pytest.mark.django_db
class TestInvitations:
    def test_an_account_joins_with_the_role_it_was_invited_to(self, alice, bob):
        found = find_invitation(invitation_token(invite(alice, bob.owner.email, "owner")))

        membership = accept_invitation(found, user=bob.owner)

        assert (membership.workspace, membership.role) == (alice.workspace, "owner")
        assert acts(alice.workspace)[-2:] == ["member_invited", "member_joined"]

    def test_a_link_works_once(self, alice, bob):
        token = invitation_token(invite(alice, bob.owner.email))
        accept_invitation(find_invitation(token), user=bob.owner)

        with pytest.raises(InvitationGone):
            find_invitation(token)

    def test_one_that_was_found_before_it_was_used_is_gone(self, alice, bob):
        token = invitation_token(invite(alice, bob.owner.email))
        early = find_invitation(token)
        accept_invitation(find_invitation(token), user=bob.owner)

        with pytest.raises(InvitationGone):
            accept_invitation(early, user=bob.owner)

    def test_a_link_works_for_seven_days(self, alice):
        invitation = invite(alice)
        token = invitation_token(invitation)

        Invitation.objects.update(expires_at=Now() + timedelta(seconds=5))
        assert find_invitation(token) == invitation
        Invitation.objects.update(expires_at=Now() - timedelta(seconds=1))

        with pytest.raises(InvitationGone):
            find_invitation(token)
        assert expired_invitations().count() == 1

    def test_it_ends_seven_days_after_it_was_made(self, alice):
        invite(alice)

        invitation = Invitation.objects.get()

        assert invitation.expires_at - invitation.created_at == timedelta(days=7)

    def test_nobody_else_can_accept_it(self, alice, bob):
        with pytest.raises(NotInvited):
            accept_invitation(invite(alice), user=bob.owner)
        assert Invitation.objects.count() == 1

    def test_a_newcomer_gets_an_account(self, alice):
        user = sign_up_invited(invite(alice), password=PASSWORD)

        assert user.email == "new@example.com"
        assert user.check_password(PASSWORD)
        assert user.memberships.get().workspace == alice.workspace

    def test_who_joins_by_a_link_is_who_joined(self, alice, client, rf):
        from django.contrib.auth.models import AnonymousUser

        from workspaces.audit import AuditMiddleware

        request, invitation = rf.post("/", REMOTE_ADDR="192.0.2.7"), invite(alice)
        request.user = AnonymousUser()
        AuditMiddleware(lambda _: sign_up_invited(invitation, password=PASSWORD))(request)

        entry = AuditEntry.objects.latest("id")
        assert (entry.act, entry.actor, entry.address) == ("member_joined", "new@example.com", "192.0.2.7")

    def test_a_link_that_was_withdrawn_makes_no_account(self, alice):
        invitation = invite(alice)
        withdraw_invitation(invitation)

        with pytest.raises(InvitationGone):
            sign_up_invited(invitation, password=PASSWORD)
        assert not User.objects.filter(email="new@example.com").exists()

    def test_inviting_again_ends_the_first_link(self, alice):
        first = invitation_token(invite(alice))
        invite(alice)

        with pytest.raises(InvitationGone):
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

    @pytest.mark.parametrize("token", ["", "x", "é", "A" * 500, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"])
    def test_what_is_no_link_finds_nothing(self, db, token):
        with pytest.raises(InvitationGone):
            find_invitation(token)


@pytest.mark.django_db
class TestTheLastOwner:
    def test_cannot_leave_be_removed_or_demoted(self, alice):
        mine = alice.workspace.memberships.get()

        for act in (leave_workspace, remove_member, lambda one: change_role(one, role="member")):
            with pytest.raises(LastOwner):
                act(mine)
        assert alice.workspace.memberships.get().role == "owner"

    def test_may_when_there_is_another(self, alice, bob):
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

        assert acts(alice.workspace).count("member_role") == 2


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_leave_at_once_leave_one_behind():
    alice, bob = make_account("alice"), make_account("bob")
    Membership.objects.create(workspace=alice.workspace, user=bob.owner, role="owner")
    start, refused = threading.Barrier(2), []

    def leave(membership):
        start.wait()
        try:
            leave_workspace(membership)
        except LastOwner:
            refused.append(membership)
        connection.close()

    threads = [threading.Thread(target=leave, args=[one]) for one in alice.workspace.memberships.all()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(refused) == 1
    assert alice.workspace.memberships.count() == 1
