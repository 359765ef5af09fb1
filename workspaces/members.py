"""People of a workspace: invited, joined, given a role, removed (docs/decisions/0055).

Every act that may end an ownership locks the workspace's row first, so that two owners who leave at once leave
one behind.
"""

from datetime import timedelta
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from lib.ids import from_uuid, to_uuid
from lib.tokens import InvalidToken, make_token, read_token
from workspaces.audit import Act, note
from workspaces.models import Invitation, Membership, User, Workspace

PURPOSE = "invitation"
VALID = timedelta(days=7)
MAX_OPEN = 100

Role = Membership.Role


class LastOwner(Exception):
    """Raised for an act that would leave a workspace without an owner."""


class AlreadyMember(Exception):
    """Raised when somebody is invited who is there already."""


class TooManyInvitations(Exception):
    """Raised at MAX_OPEN open invitations."""


class InvitationGone(Exception):
    """Raised for a link that is no invitation, or not any more: accepted, withdrawn, expired."""


class NotInvited(Exception):
    """Raised when an account of another address would accept."""


@transaction.atomic
def invite_member(workspace: Workspace, *, email: str, role: str, by: User) -> Invitation:
    """Open an invitation; one that is open to this address already is replaced, and its link ends.

    Raises AlreadyMember, TooManyInvitations.
    """
    _lock(workspace)
    if workspace.memberships.filter(user__email=email).exists():
        raise AlreadyMember
    workspace.invitations.filter(email=email).delete()
    if workspace.invitations.filter(expires_at__gt=Now()).count() >= MAX_OPEN:
        raise TooManyInvitations
    invitation = Invitation.objects.create(
        workspace=workspace, email=email, role=role, invited_by=by, expires_at=Now() + VALID
    )
    note(workspace, Act.MEMBER_INVITED, about=f"{email} as {role}")
    return invitation


def invitation_token(invitation: Invitation) -> str:
    return make_token(to_uuid(invitation.id, prefix="inv_").bytes, purpose=PURPOSE)


def find_invitation(token: str) -> Invitation:
    """Return the open invitation behind a link. Raises InvitationGone."""
    try:
        number = UUID(bytes=read_token(token, purpose=PURPOSE))
    except (InvalidToken, ValueError) as error:
        raise InvitationGone from error
    open_ones = Invitation.objects.select_related("workspace", "invited_by").filter(expires_at__gt=Now())
    invitation = open_ones.filter(id=from_uuid(number, prefix="inv_")).first()
    if invitation is None:
        raise InvitationGone
    return invitation


@transaction.atomic
def accept_invitation(invitation: Invitation, *, user: User) -> Membership:
    """Make the invited account a member. Raises NotInvited, InvitationGone when the link was used meanwhile."""
    if user.email != invitation.email:
        raise NotInvited
    _lock(invitation.workspace)
    deleted, _ = Invitation.objects.filter(id=invitation.id, expires_at__gt=Now()).delete()
    if not deleted:
        raise InvitationGone
    membership, _ = Membership.objects.get_or_create(
        workspace=invitation.workspace, user=user, defaults={"role": invitation.role}
    )
    note(invitation.workspace, Act.MEMBER_JOINED, about=user.email, person=user)
    return membership


@transaction.atomic
def sign_up_invited(invitation: Invitation, *, password: str) -> User:
    """Create the invited account and make it a member; the link proved its address. Raises InvitationGone."""
    try:
        with transaction.atomic():
            user = User.objects.create_user(email=invitation.email, password=password)
    except IntegrityError as error:
        raise InvitationGone from error
    accept_invitation(invitation, user=user)
    return user


@transaction.atomic
def withdraw_invitation(invitation: Invitation) -> None:
    deleted, _ = Invitation.objects.filter(id=invitation.id).delete()
    if deleted:
        note(invitation.workspace, Act.INVITATION_WITHDRAWN, about=invitation.email)


@transaction.atomic
def change_role(membership: Membership, *, role: str) -> None:
    """Raises LastOwner."""
    _lock(membership.workspace)
    if role != Role.OWNER:
        _keep_an_owner(membership)
    if Membership.objects.filter(id=membership.id).exclude(role=role).update(role=role):
        note(membership.workspace, Act.MEMBER_ROLE, about=f"{membership.user.email}: {role}")


@transaction.atomic
def remove_member(membership: Membership) -> None:
    """Raises LastOwner. Their keys stay: a key belongs to the workspace."""
    _end(membership, Act.MEMBER_REMOVED)


@transaction.atomic
def leave_workspace(membership: Membership) -> None:
    """Raises LastOwner."""
    _end(membership, Act.MEMBER_LEFT)


def _end(membership: Membership, act: Act) -> None:
    _lock(membership.workspace)
    _keep_an_owner(membership)
    deleted, _ = Membership.objects.filter(id=membership.id).delete()
    if deleted:
        note(membership.workspace, act, about=membership.user.email)


def _keep_an_owner(membership: Membership) -> None:
    """Raises LastOwner unless somebody else owns the workspace, too; asked behind the lock."""
    owners = Membership.objects.filter(workspace=membership.workspace_id, role=Role.OWNER)
    if owners.filter(id=membership.id).exists() and not owners.exclude(id=membership.id).exists():
        raise LastOwner


def _lock(workspace: Workspace) -> None:
    Workspace.objects.select_for_update(no_key=True).only("id").get(id=workspace.id)


def expired_invitations() -> QuerySet[Invitation]:
    return Invitation.objects.filter(expires_at__lte=Now())
