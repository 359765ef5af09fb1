"""Receiving on the pages, which do not mention it in a workspace that receives nothing (docs/decisions/0240)."""

from django.conf import settings
from django.db.models import Exists
from django.http import HttpRequest

from dashboard.ui.current_workspace import current_workspace, workspaces_of
from domains.models import ReceivingDomain
from receiving.models import InboundRoute, ReceivedEmail
from workspaces.models import Workspace


def uses_receiving(request: HttpRequest) -> bool:
    """Return whether the current workspace has an address, or has received something. One query per request."""
    cache = request.__dict__
    if "receiving" not in cache:
        cache["receiving"] = bool(workspaces_of(request)) and _receives(current_workspace(request))
    return bool(cache["receiving"])


def _receives(workspace: Workspace) -> bool:
    if settings.RECEIVING_DOMAIN:
        return True
    has_domain = Exists(ReceivingDomain.objects.filter(workspace=workspace))
    has_route = Exists(InboundRoute.objects.filter(workspace=workspace))
    has_email = Exists(ReceivedEmail.objects.filter(workspace=workspace))
    return Workspace.objects.filter(has_domain | has_route | has_email, id=workspace.id).exists()
