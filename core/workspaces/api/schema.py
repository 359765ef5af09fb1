"""OpenAPI descriptions of authenticated operations and of `GET /v1/me`."""

from collections.abc import Callable
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension

from core.api.errors import ProcessorTimeExceeded, RateLimitExceeded, TooManyConcurrentRequests
from core.api.schema import Access, Operation, V, describe_view, http_method, response
from core.workspaces import errors
from core.workspaces.api.scopes import Scope, action_scopes
from core.workspaces.api.serializers import MeSerializer

# Problems of all operations with an API key.
EXCESS = (RateLimitExceeded, TooManyConcurrentRequests, ProcessorTimeExceeded)
UNAUTHENTICATED = (errors.MissingApiKey, errors.InvalidApiKey, errors.RevokedApiKey, errors.ExpiredApiKey)


def keyed_view(**operations: Operation) -> Callable[[V], V]:
    """Describe the methods of a view that requires an API key; see core.api.schema.describe_view."""
    return describe_view(_access, **operations)


def _access(view: Any, name: str) -> Access:
    """Return the scopes that a view method accepts, as a sentence, and the problems of its authentication."""
    scopes = action_scopes(view, getattr(view, "action", name), is_reading=http_method(view, name) == "get")
    problems = (*UNAUTHENTICATED, errors.NetworkNotAllowed, *EXCESS)
    if len(scopes) == len(Scope):
        return Access("Accepts an API key with any scope.", problems)
    names = ", ".join(f"`{scope.value}`" for scope in scopes)
    choice = f"one of the scopes {names}" if len(scopes) > 1 else f"the scope {names}"
    return Access(f"Requires an API key with {choice}.", (*problems, errors.InsufficientScope))


class ApiKeyExtension(OpenApiAuthenticationExtension):
    target_class = "core.workspaces.api.authentication.ApiKeyAuthentication"
    name = "Bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        description = "An API key from the dashboard: `Authorization: Bearer pr_…`. A key belongs to one workspace."
        return {"type": "http", "scheme": "bearer", "bearerFormat": "pr_…", "description": description}


KEY_LIMITS = {
    "domains": ["shop.example"],
    "networks": ["203.0.113.0/24"],
    "templates": [],
    "requestsPerSecond": 10,
}
ME = {
    "workspace": {"id": "ws_0Uf7kWQ2mX1cVbNq8RtYzA", "name": "Demo", "plan": "pro"},
    "key": {
        "id": "key_0Uf7kWRb3nC5xZaLs9DfGh",
        "name": "Website",
        "scope": "sending_access",
        "test": False,
        "limits": KEY_LIMITS,
    },
    "quota": {"limit": 50_000, "used": 1_204, "remaining": 48_796, "resetsAt": "2026-12-01T00:00:00.000Z"},
    "recipients": "all",
}

me_schema = keyed_view(
    get=Operation(
        "getMe",
        "Get the workspace and the key",
        "Returns the workspace and API key of the request, and the remaining monthly quota. `limit` and `remaining` "
        "are null on an unlimited plan. Use it to test a key.",
        response(MeSerializer, "The workspace, the key and the quota.", ME),
    )
)
