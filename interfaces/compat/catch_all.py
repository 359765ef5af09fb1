"""Catch-all routes: the settings of dialects in which one endpoint gets all email of a domain.

They are routes of `/v1` with the pattern `*`. See docs/decisions/0242.
"""

from collections.abc import Mapping
from typing import Any

from core.workspaces.models import Workspace
from domains.models import Domain, ReceivingDomain
from domains.names import InvalidDomainName, to_a_label
from domains.services import change_domain
from interfaces.compat.errors import invalid_field
from receiving.models import InboundRoute
from receiving.services import create_route, update_route

ALL = "*"
RECEIVED = "received"


def receive_domain(workspace: Workspace, name: Any, *, field: str) -> str:
    """Return the name of a registered domain, whose email is received from now on. Raises InvalidFields."""
    try:
        hostname = to_a_label(name if isinstance(name, str) else "")
    except InvalidDomainName as error:
        raise invalid_field(field, str(error), code="invalid_domain") from error
    if ReceivingDomain.objects.filter(workspace=workspace, name=hostname).exists():
        return hostname
    domain = Domain.objects.filter(workspace=workspace, name=hostname).first()
    if domain is None:
        raise invalid_field(field, f"{hostname} is not a domain of this workspace. Register it first.")
    change_domain(domain, {"receiving": True})
    return hostname


def find_catch_all(workspace: Workspace, domain: str) -> InboundRoute | None:
    """Return the route of all addresses of a domain, or of the shared address: the first one."""
    return InboundRoute.objects.filter(workspace=workspace, domain=domain, match=ALL).first()


def save_catch_all(workspace: Workspace, domain: str, *, name: str, values: Mapping[str, Any]) -> InboundRoute:
    """Create or change the route of all addresses of a domain. Raises InvalidFields, PlanLimitReached."""
    route = find_catch_all(workspace, domain)
    if route:
        return update_route(route, changes=values) if values else route
    return create_route(workspace, values={"name": name, "domain": domain, "match": ALL, **values})
