"""The plan's limit of domains: it counts those that were verified, and permits a few more while they are pending.

Where domains may send without verification, all of them count. See docs/decisions/0257.
"""

from django.conf import settings
from django.db.models import QuerySet

from core.lib.coded_texts import CodedText
from core.workspaces.errors import PlanLimitReached
from core.workspaces.models import Workspace
from core.workspaces.plans import PENDING_DOMAINS
from domains.models import Domain


def count_domains(workspace: Workspace) -> int:
    """Return the number of domains that count towards the limit of the plan."""
    return _counted(workspace.id).count()


def refuse_registration(workspace: Workspace) -> None:
    """Raise PlanLimitReached if the plan allows no more domains."""
    limit = workspace.limits.domains
    if limit is None:
        return
    if count_domains(workspace) >= limit or workspace.domains.count() >= limit + PENDING_DOMAINS:
        raise _limit_reached(workspace, limit)


def refuse_verification(domain: Domain) -> None:
    """Raise PlanLimitReached if as many other domains were verified as the plan allows."""
    workspace = Workspace.objects.get(id=domain.workspace_id)
    if not may_become_verified(domain, workspace):
        raise _limit_reached(workspace, workspace.limits.domains or 0)


def may_become_verified(domain: Domain, workspace: Workspace) -> bool:
    """Return whether a domain may be verified; one that was verified before keeps its place."""
    limit = workspace.limits.domains
    return limit is None or domain.verified_at is not None or _verified(workspace.id).count() < limit


def _counted(workspace_id: str) -> QuerySet[Domain]:
    if settings.SENDING_DOMAIN_POLICY == "registered":
        return Domain.objects.filter(workspace_id=workspace_id)
    return _verified(workspace_id)


def _verified(workspace_id: str) -> QuerySet[Domain]:
    # Also those that fail now: they can be verified again.
    return Domain.objects.filter(workspace_id=workspace_id).exclude(verified_at=None)


def _limit_reached(workspace: Workspace, limit: int) -> PlanLimitReached:
    detail = CodedText("domains.plan_limit", plan=workspace.plan, limit=limit)
    return PlanLimitReached(detail, resource="domains", limit=limit)
