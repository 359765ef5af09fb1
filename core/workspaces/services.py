"""Services for accounts, workspaces, API keys and usage."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any, Protocol

from django.db import transaction
from django.db.models.functions import Now

from core.api.errors import InvalidFields
from core.lib.coded_texts import CodedText
from core.workspaces.api_key_secrets import KeySecret, hash_secret, new_secret
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.deletion import refuse_deleted
from core.workspaces.errors import PlanLimitReached
from core.workspaces.key_limits import NO_LIMITS, KeyLimits, refuse_broader, refuse_scope
from core.workspaces.models import ApiKey, Membership, Usage, User, Workspace
from core.workspaces.plans import MAX_KEYS
from core.workspaces.recipients.rules import FIELD as RULES_FIELD
from core.workspaces.recipients.rules import RecipientRules


@transaction.atomic
def create_account(
    *, email: str, password: str, workspace_name: str, plan: str, is_proven: bool = True, language: str = ""
) -> Workspace:
    """Create an account and a workspace that it owns. Raises IntegrityError if the address is in use.

    is_proven: whether the address is confirmed; API keys do not work before that.
    """
    user = User.objects.create_user(email=email, password=password, language=language)
    return create_workspace(name=workspace_name, plan=plan, owner=user, is_proven=is_proven)


@transaction.atomic
def create_workspace(
    *, name: str, plan: str, owner: User | None = None, group: str = "", is_proven: bool = True
) -> Workspace:
    """Create a workspace; without an owner, a management key manages it."""
    workspace = Workspace.objects.create(name=name, plan=plan, group=group, is_proven=is_proven)
    about = f"{name}, {plan}"
    if owner:
        Membership.objects.create(workspace=workspace, user=owner, role=Membership.Role.OWNER)
        about = CodedText("workspaces.workspace_created", about=about, owner=owner.email)
    record_action(workspace, AuditAction.WORKSPACE_CREATED, about=about, person=owner)
    return workspace


@transaction.atomic
def rename_workspace(workspace: Workspace, *, name: str) -> None:
    if Workspace.objects.filter(id=workspace.id).exclude(name=name).update(name=name):
        record_action(workspace, AuditAction.WORKSPACE_RENAMED, about=name)


@transaction.atomic
def issue_api_key(
    workspace: Workspace,
    *,
    name: str,
    scope: str,
    expires_at: datetime | None = None,
    created_by: User | None = None,
    limits: KeyLimits = NO_LIMITS,
    rules: RecipientRules | None = None,
) -> tuple[ApiKey, KeySecret]:
    """Create an API key; return it with its secret, which is not stored.

    created_by: a member of the workspace, shown to the others.
    Raises WorkspaceDeleted, PlanLimitReached at 100 keys, InvalidFields for limits or rules that the scope does not
    support.
    """
    refuse_scope(limits, can_only_send=scope in ApiKey.SENDING_SCOPES)
    refuse_rules(rules, scope=scope)
    refuse_deleted(Workspace.objects.select_for_update().get(id=workspace.id))
    if workspace.api_keys.filter(revoked_at=None).count() >= MAX_KEYS:
        raise PlanLimitReached(
            CodedText("workspaces.too_many_keys", limit=MAX_KEYS), resource="apiKeys", limit=MAX_KEYS
        )
    key = ApiKey(workspace=workspace, name=name, scope=scope, expires_at=expires_at, created_by=created_by)
    key.restrictions = limits.to_json()
    key.recipient_rules = rules.to_json() if rules else None
    secret = new_secret(key.id, prefix=key.prefix)
    key.secret_hash, key.last_four = hash_secret(secret.secret), secret.text[-4:]
    key.save(force_insert=True)
    is_limited = rules or replace(limits, is_test=False, needs_approval=False) != NO_LIMITS
    words = [scope, "limited"] if is_limited else [scope]
    if limits.needs_approval:
        words.append("approval")
    about = CodedText("workspaces.key_created", about=key.label, words=words)
    record_action(workspace, AuditAction.KEY_CREATED, about=about)
    return key, secret


class CreatingKey(Protocol):
    """An API key or a management key that creates an API key."""

    expires_at: Any


def issue_key_for(
    workspace: Workspace,
    *,
    creator: CreatingKey,
    name: str,
    scope: str,
    expires_at: datetime | None = None,
    limits: KeyLimits = NO_LIMITS,
    rules: RecipientRules | None = None,
) -> tuple[ApiKey, KeySecret]:
    """Create an API key that is not broader than its creator and expires no later. Raises InvalidFields."""
    if isinstance(creator, ApiKey):
        refuse_broader(limits, creator=creator.limits)
    limit = creator.expires_at
    if limit and (expires_at is None or expires_at > limit):
        detail = f"The new key must expire no later than the key that creates it, at {limit.isoformat()}."
        raise InvalidFields([{"field": "expiresAt", "code": "too_late", "detail": detail}])
    return issue_api_key(workspace, name=name, scope=scope, expires_at=expires_at, limits=limits, rules=rules)


def refuse_rules(rules: RecipientRules | None, *, scope: str) -> None:
    """Refuse rules for a key that could change them. Raises InvalidFields."""
    if rules and scope == ApiKey.Scope.WORKSPACE_ADMIN:
        detail = CodedText("workspaces.rules_scope")
        raise InvalidFields([{"field": RULES_FIELD, "code": "requires_other_scope", "detail": detail}])


@transaction.atomic
def change_rules(owner: Workspace | ApiKey, *, rules: RecipientRules | None) -> bool:
    """Set the recipient rules of a workspace or an API key, None for none; return whether they changed.

    New emails obey within one second, accepted ones when they are claimed. Raises InvalidFields.
    """
    workspace, about = (owner, owner.name) if isinstance(owner, Workspace) else (owner.workspace, owner.label)
    if isinstance(owner, ApiKey):
        refuse_rules(rules, scope=owner.scope)
    stored = rules.to_json() if rules else None
    row = type(owner).objects.select_for_update(no_key=True).get(pk=owner.pk)
    if row.recipient_rules == stored:
        return False
    row.recipient_rules = stored
    row.save(update_fields=["recipient_rules"])
    text = CodedText("workspaces.rules_removed", about=about)
    if rules:
        text = CodedText("workspaces.rules_set", about=about, words=rules.summary)
    record_action(workspace, AuditAction.RULES_CHANGED, about=text)
    return True


@dataclass(frozen=True)
class MonthlyUsage:
    """Quota units used in one calendar month, UTC; month is its first day."""

    month: date
    used: int


def usage_history(workspace: Workspace, *, months: int = 12) -> list[MonthlyUsage]:
    """Return the usage of the last months, oldest first, including the current one and months without usage."""
    this_month = datetime.now(UTC).date().replace(day=1)
    wanted = [_months_before(this_month, back) for back in reversed(range(months))]
    used = dict(Usage.objects.filter(workspace=workspace, month__in=wanted).values_list("month", "used"))
    return [MonthlyUsage(month, used.get(month, 0)) for month in wanted]


def _months_before(first: date, months: int) -> date:
    year, month = divmod(first.year * 12 + first.month - 1 - months, 12)
    return date(year, month + 1, 1)


@transaction.atomic
def revoke_api_key(key: ApiKey) -> None:
    """Revoke a key permanently. Takes effect in all processes within one second. Revoking again does nothing."""
    if ApiKey.objects.filter(id=key.id, revoked_at=None).update(revoked_at=Now()):
        record_action(key.workspace, AuditAction.KEY_REVOKED, about=key.label)
