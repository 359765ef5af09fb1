"""Which workspace a page is about: the one chosen in the session, among those of who is signed in."""

from django.db.models import F
from django.http import Http404, HttpRequest

from workspaces.models import Membership, Workspace

SESSION_KEY = "workspace"


def workspaces_of(request: HttpRequest) -> list[Workspace]:
    """Return the workspaces that the user is a member of, by name; asked of the database once a request."""
    known = request.__dict__
    if "workspaces" not in known:
        known["workspaces"] = _memberships(request)
    found: list[Workspace] = known["workspaces"]
    return found


def current_workspace(request: HttpRequest) -> Workspace:
    """Return the chosen workspace, the first while none is chosen. Raises Http404 for who has none."""
    mine = workspaces_of(request)
    if not mine:
        raise Http404
    # A choice outlives the membership behind it; then it counts for nothing.
    chosen = request.session.get(SESSION_KEY)
    return next((workspace for workspace in mine if workspace.id == chosen), mine[0])


def choose_workspace(request: HttpRequest, workspace_id: str) -> None:
    """Keep the choice for the session. Raises Http404 for a workspace of others."""
    if workspace_id not in {workspace.id for workspace in workspaces_of(request)}:
        raise Http404
    request.session[SESSION_KEY] = workspace_id


def is_owner(request: HttpRequest) -> bool:
    """Tell whether the user owns the current workspace."""
    return bool(workspaces_of(request)) and getattr(current_workspace(request), "role", "") == Membership.Role.OWNER


def _memberships(request: HttpRequest) -> list[Workspace]:
    user = request.user
    if not user.is_authenticated or not user.is_active:
        return []
    mine = Workspace.objects.filter(memberships__user=user)
    return list(mine.annotate(role=F("memberships__role")).order_by("name", "id"))
