"""Workspace members: invite, accept, change roles, remove and leave (docs/decisions/0055).

Every action that may remove an owner locks the workspace row first, so that two owners who leave at the same time
cannot leave the workspace without an owner.
"""

from datetime import timedelta
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from core.api.errors import Problem
from core.lib.coded_texts import CodedText
from core.lib.ids import from_uuid, to_uuid
from core.lib.tokens import InvalidToken, make_token, read_token
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.errors import PlanLimitReached
from core.workspaces.models import Invitation, Membership, User, Workspace

PURPOSE = "invitation"
LINK_LIFETIME = timedelta(days=7)
MAX_OPEN_INVITATIONS = 100

Role = Membership.Role


class LastOwner(Problem):
    """The action would leave the workspace without an owner.

    Make another member an owner first.
    """

    status, code, title = 409, "last_owner", "Last owner"
    example = "A workspace with members must have an owner. Make another member an owner first."

    def __init__(self) -> None:
        super().__init__(self.example)


class AlreadyMember(Problem):
    """The invited address is already a member of the workspace.

    Change the role of the member instead.
    """

    status, code, title = 409, "already_member", "Already a member"
    example = "ada@example.com is already a member of this workspace."


class TooManyInvitations(PlanLimitReached):
    """Raised when a workspace has MAX_OPEN_INVITATIONS open invitations."""

    # Documented by its parent.
    example = ""

    def __init__(self) -> None:
        detail = f"A workspace can have at most {MAX_OPEN_INVITATIONS} open invitations. Withdraw one first."
        super().__init__(detail, resource="invitations", limit=MAX_OPEN_INVITATIONS)


class InvalidInvitation(Exception):
    """Raised for an invitation link that is invalid, accepted, withdrawn or expired."""


class NotInvited(Exception):
    """Raised when an account with another address accepts an invitation."""


@transaction.atomic
def invite_member(workspace: Workspace, *, email: str, role: str, by: User | None) -> Invitation:
    """Create an invitation, replacing an open one for the same address, whose link stops working.

    by: None for an invitation by a key. Raises AlreadyMember, TooManyInvitations.
    """
    workspace.lock()
    if workspace.memberships.filter(user__email=email).exists():
        raise AlreadyMember(f"{email} is already a member of this workspace.")
    workspace.invitations.filter(email=email).delete()
    if workspace.invitations.filter(expires_at__gt=Now()).count() >= MAX_OPEN_INVITATIONS:
        raise TooManyInvitations
    invitation = Invitation.objects.create(
        workspace=workspace, email=email, role=role, invited_by=by, expires_at=Now() + LINK_LIFETIME
    )
    about = CodedText("workspaces.invited", about=email, words=[role])
    record_action(workspace, AuditAction.MEMBER_INVITED, about=about)
    return invitation


def invitation_token(invitation: Invitation) -> str:
    return make_token(to_uuid(invitation.id, prefix="inv_").bytes, purpose=PURPOSE)


def find_invitation(token: str) -> Invitation:
    """Return the open invitation behind a link. Raises InvalidInvitation."""
    try:
        uuid = UUID(bytes=read_token(token, purpose=PURPOSE))
    except (InvalidToken, ValueError) as error:
        raise InvalidInvitation from error
    open_invitations = Invitation.objects.select_related("workspace", "invited_by").filter(expires_at__gt=Now())
    invitation = open_invitations.filter(id=from_uuid(uuid, prefix="inv_")).first()
    if invitation is None:
        raise InvalidInvitation
    return invitation


@transaction.atomic
def accept_invitation(invitation: Invitation, *, user: User) -> Membership:
    """Make the invited account a member. Raises NotInvited, and InvalidInvitation if the link was used meanwhile."""
    if user.email != invitation.email:
        raise NotInvited
    invitation.workspace.lock()
    deleted, _ = Invitation.objects.filter(id=invitation.id, expires_at__gt=Now()).delete()
    if not deleted:
        raise InvalidInvitation
    membership, _ = Membership.objects.get_or_create(
        workspace=invitation.workspace, user=user, defaults={"role": invitation.role}
    )
    if membership.claimed_role:
        membership.invited_role = invitation.role
        membership.role = Role.OWNER if Role.OWNER in {membership.role, invitation.role} else Role.MEMBER
        membership.save(update_fields=["invited_role", "role"])
    record_action(invitation.workspace, AuditAction.MEMBER_JOINED, about=user.email, person=user)
    return membership


@transaction.atomic
def sign_up_invited(invitation: Invitation, *, password: str, language: str = "") -> User:
    """Create the invited account and make it a member. The link confirms its address. Raises InvalidInvitation."""
    try:
        with transaction.atomic():
            user = User.objects.create_user(email=invitation.email, password=password, language=language)
    except IntegrityError as error:
        raise InvalidInvitation from error
    accept_invitation(invitation, user=user)
    return user


@transaction.atomic
def withdraw_invitation(invitation: Invitation) -> None:
    deleted, _ = Invitation.objects.filter(id=invitation.id).delete()
    if deleted:
        record_action(invitation.workspace, AuditAction.INVITATION_WITHDRAWN, about=invitation.email)


@transaction.atomic
def change_role(membership: Membership, *, role: str) -> None:
    """Change a member's role. Claims may raise it again at the next sign-in (core.workspaces.identities).

    Raises LastOwner.
    """
    membership.workspace.lock()
    if role != Role.OWNER:
        require_another_owner(membership)
    invited_role = role if membership.claimed_role else ""
    if Membership.objects.filter(id=membership.id).exclude(role=role).update(role=role, invited_role=invited_role):
        about = CodedText("workspaces.change", about=membership.user.email, words=[role])
        record_action(membership.workspace, AuditAction.MEMBER_ROLE_CHANGED, about=about)


@transaction.atomic
def remove_member(membership: Membership) -> None:
    """Remove a member. API keys stay active: they belong to the workspace. Raises LastOwner."""
    _delete_membership(membership, AuditAction.MEMBER_REMOVED)


@transaction.atomic
def leave_workspace(membership: Membership) -> None:
    """End one's own membership. Raises LastOwner."""
    _delete_membership(membership, AuditAction.MEMBER_LEFT)


def _delete_membership(membership: Membership, action: AuditAction) -> None:
    membership.workspace.lock()
    require_another_owner(membership)
    deleted, _ = Membership.objects.filter(id=membership.id).delete()
    if deleted:
        record_action(membership.workspace, action, about=membership.user.email)


def require_another_owner(membership: Membership) -> None:
    """Raise LastOwner if the member is the only owner. Requires the lock on the workspace."""
    owners = Membership.objects.filter(workspace=membership.workspace_id, role=Role.OWNER)
    if owners.filter(id=membership.id).exists() and not owners.exclude(id=membership.id).exists():
        raise LastOwner


def expired_invitations() -> QuerySet[Invitation]:
    return Invitation.objects.filter(expires_at__lte=Now())
