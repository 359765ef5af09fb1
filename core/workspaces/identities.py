"""Identities at an identity provider: linked accounts, and roles that follow the claims (docs/decisions/0201)."""

from collections.abc import Mapping
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.dispatch import Signal

from core.lib.coded_texts import CodedText
from core.workspaces.access_rules import RANKS, Grants, higher_role
from core.workspaces.audit import AuditAction, record_about_account, record_action, record_for_workspaces
from core.workspaces.deletion import existing_workspaces
from core.workspaces.members import LastOwner, remove_member, require_another_owner
from core.workspaces.models import AuditEntry, Identity, Membership, UsedLogoutToken, User, Workspace

# Staff are told of a last owner without a claim at most this often.
REMINDER_PERIOD = timedelta(days=1)

# Sent in the transaction of a sign-in, with the workspace and the user; console.system_mail.workspace_emails receives
# it.
last_owner_kept = Signal()


class IdentityTaken(Exception):
    """Raised if the identity belongs to another account, or the account has another identity of the issuer."""


class ClaimsNotSent(Exception):
    """Raised if access would be taken away because the provider did not send the claims it depends on."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(names)))


@transaction.atomic
def create_identity_account(*, email: str, issuer: str, subject: str, language: str) -> User:
    """Create an account without a password. Raises IdentityTaken if the address or the identity is in use."""
    try:
        with transaction.atomic():
            user = User.objects.create_user(email=email, password=None, language=language)
    except IntegrityError as error:
        raise IdentityTaken from error
    link_identity(user, issuer=issuer, subject=subject)
    return user


@transaction.atomic
def link_identity(user: User, *, issuer: str, subject: str) -> Identity:
    """Let the identity sign in to the account. Raises IdentityTaken."""
    try:
        with transaction.atomic():
            identity = Identity.objects.create(user=user, issuer=issuer, subject=subject)
    except IntegrityError as error:
        raise IdentityTaken from error
    record_action(None, AuditAction.IDENTITY_LINKED, about=f"{user.email}: {identity}", person=user)
    record_for_workspaces(user, AuditAction.IDENTITY_LINKED, about=user.email)
    return identity


@transaction.atomic
def apply_grants(user: User, grants: Grants) -> None:
    """Give the account the roles of the claims, and take away those that earlier claims gave.

    Roles by invitation stay. Raises ClaimsNotSent, and then changes nothing.
    """
    user = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    claimed = {row.workspace_id: row.claimed_role for row in user.memberships.exclude(claimed_role="")}
    _refuse_undecided(user, claimed, grants)
    _apply_staff(user, is_staff=grants.access.is_staff)
    concerned = existing_workspaces().filter(id__in={*claimed, *grants.access.roles})
    # In one order, as each is locked.
    for workspace in concerned.order_by("id"):
        try:
            _apply_role(workspace, user, claimed=grants.access.roles.get(workspace.id, ""))
        except LastOwner:
            _tell_staff_of_last_owner(workspace, user)


@transaction.atomic
def end_sessions(user: User) -> None:
    """End all sessions of the account, as its identity provider requested."""
    User.objects.filter(pk=user.pk).update(sessions_ended_at=Now())
    record_about_account(user, AuditAction.SIGNED_OUT_BY_PROVIDER)


def use_logout_token(digest: str, *, lifetime: timedelta) -> bool:
    """Return whether a logout token is used for the first time."""
    _token, is_first = UsedLogoutToken.objects.get_or_create(digest=digest, defaults={"expires_at": Now() + lifetime})
    return is_first


def delete_expired_logout_tokens() -> None:
    UsedLogoutToken.objects.filter(expires_at__lt=Now()).delete()


def _refuse_undecided(user: User, claimed: Mapping[str, str], grants: Grants) -> None:
    """Raise ClaimsNotSent if a claim that was not sent may decide whether something is taken away."""
    given, possible = grants.access, grants.possible
    is_staff_undecided = user.staff_from_claims and not given.is_staff and possible.is_staff
    undecided = [
        workspace_id
        for workspace_id, role in claimed.items()
        if RANKS[given.roles.get(workspace_id, "")] < min(RANKS[role], RANKS[possible.roles.get(workspace_id, "")])
    ]
    if is_staff_undecided or undecided:
        raise ClaimsNotSent(grants.unsent)


def _apply_staff(user: User, *, is_staff: bool) -> None:
    if is_staff == user.staff_from_claims or (is_staff and user.is_staff):
        return
    User.objects.filter(pk=user.pk).update(is_staff=is_staff, is_superuser=is_staff, staff_from_claims=is_staff)
    about = CodedText("workspaces.staff_given" if is_staff else "workspaces.staff_taken", about=user.email)
    record_action(None, AuditAction.STAFF_CHANGED, about=about, person=user)


def _apply_role(workspace: Workspace, user: User, *, claimed: str) -> None:
    """Set the role in one workspace to the higher one of claims and invitation. Raises LastOwner."""
    workspace.lock()
    membership = Membership.objects.filter(workspace=workspace, user=user).first()
    if membership is None:
        if claimed:
            Membership.objects.create(workspace=workspace, user=user, role=claimed, claimed_role=claimed)
            _record(workspace, AuditAction.MEMBER_JOINED, user, role=claimed)
        return
    invited = membership.invited_role if membership.claimed_role else membership.role
    role = higher_role(claimed, invited)
    if not role:
        remove_member(membership)
        return
    if role != Membership.Role.OWNER:
        require_another_owner(membership)
    kept_invitation = invited if claimed else ""
    Membership.objects.filter(id=membership.id).update(role=role, claimed_role=claimed, invited_role=kept_invitation)
    if role != membership.role:
        _record(workspace, AuditAction.MEMBER_ROLE_CHANGED, user, role=role)


def _record(workspace: Workspace, action: AuditAction, user: User, *, role: str) -> None:
    about = CodedText("workspaces.change", about=user.email, words=[role])
    record_action(workspace, action, about=about, person=user)


def _tell_staff_of_last_owner(workspace: Workspace, user: User) -> None:
    entries = AuditEntry.objects.filter(workspace=workspace, act=AuditAction.LAST_OWNER_KEPT)
    if not entries.filter(about=user.email, created_at__gt=Now() - REMINDER_PERIOD).exists():
        record_action(workspace, AuditAction.LAST_OWNER_KEPT, about=user.email, person=user)
        last_owner_kept.send(Workspace, workspace=workspace, user=user)
