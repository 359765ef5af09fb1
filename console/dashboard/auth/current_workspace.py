"""Current workspace: the one selected in the session, among the workspaces of the signed-in user."""

from typing import Any

from django.conf import settings
from django.db.models import Exists, F, OuterRef
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from alerts.models import Alert
from core.workspaces.deletion import existing_workspaces
from core.workspaces.models import Membership, Workspace
from domains.models import ReceivingDomain
from emails.models import Email
from interfaces.inbound.inbox.models import CaughtMail
from receiving.models import InboundRoute, ReceivedEmail

SESSION_KEY = "workspace"


def workspaces_of(request: HttpRequest) -> list[Workspace]:
    """Return the user's workspaces by name, with one database query per request."""
    cache = request.__dict__
    if "workspaces" not in cache:
        cache["workspaces"] = _read_workspaces(request)
    workspaces: list[Workspace] = cache["workspaces"]
    return workspaces


def current_workspace(request: HttpRequest) -> Workspace:
    """Return the selected workspace, or the first. Raises Http404 for a user without a workspace."""
    workspaces = workspaces_of(request)
    if not workspaces:
        raise Http404
    # The session may name a workspace that the user has left; it is ignored then.
    selected_id = request.session.get(SESSION_KEY)
    return next((workspace for workspace in workspaces if workspace.id == selected_id), workspaces[0])


@require_POST
def switch_workspace(request: HttpRequest) -> HttpResponse:
    """Select a workspace for the session: POST workspace=ws_…. Raises Http404 for a workspace of others.

    The sidebar's menu sends it with htmx, which redirects by a response header.
    """
    workspace_id = request.POST.get("workspace", "")
    if workspace_id not in {workspace.id for workspace in workspaces_of(request)}:
        raise Http404
    request.session[SESSION_KEY] = workspace_id
    home = reverse("dashboard:index")
    if "HX-Request" in request.headers:
        return HttpResponse(status=204, headers={"HX-Redirect": home})
    return redirect(home)


def is_owner(request: HttpRequest) -> bool:
    """Return True if the user owns the current workspace."""
    return bool(_annotation(request, "role") == Membership.Role.OWNER)


def uses_receiving(request: HttpRequest) -> bool:
    """Return whether the current workspace has an address, or has received something (docs/decisions/0240)."""
    return bool(_annotation(request, "receives") or (settings.RECEIVING_DOMAIN and workspaces_of(request)))


def uses_alerts(request: HttpRequest) -> bool:
    """Return whether the current workspace has an alert; the sidebar does not mention them in one that has none."""
    return bool(_annotation(request, "has_alerts"))


def has_captured(request: HttpRequest) -> bool:
    """Return whether the inbox has a captured email of the current workspace."""
    return bool(_annotation(request, "has_captured"))


def has_held_emails(request: HttpRequest) -> bool:
    """Return whether emails of the current workspace wait for approval; the pages do not mention it otherwise."""
    return bool(_annotation(request, "has_held"))


def _annotation(request: HttpRequest, name: str) -> Any:
    """Return what _read_workspaces adds to the current workspace; None for a user without a workspace."""
    return getattr(current_workspace(request), name, None) if workspaces_of(request) else None


def _read_workspaces(request: HttpRequest) -> list[Workspace]:
    user = request.user
    if not user.is_authenticated or not user.is_active:
        return []
    workspaces = existing_workspaces().filter(memberships__user=user)
    of_workspace = {"workspace": OuterRef("pk")}
    has_domain = Exists(ReceivingDomain.objects.filter(**of_workspace))
    has_route = Exists(InboundRoute.objects.filter(**of_workspace))
    has_received = Exists(ReceivedEmail.objects.filter(**of_workspace))
    annotated = workspaces.annotate(
        role=F("memberships__role"),
        receives=has_domain | has_route | has_received,
        has_alerts=Exists(Alert.objects.filter(**of_workspace)),
        has_captured=Exists(CaughtMail.objects.filter(is_captured=True, **of_workspace)),
        has_held=Exists(Email.objects.filter(**of_workspace).held()),
    )
    return list(annotated.order_by("name", "id"))
