"""The operations that need a key, and `GET /v1/me`, in the OpenAPI document."""

from collections.abc import Callable, Iterable
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import extend_schema_view

from api.schema import RATE_LIMIT_EXCEEDED, TEXT, WHOLE, KnownProblem, answer, known, operation
from api.schema_fields import refine
from workspaces import errors
from workspaces.api.serializers import KeySerializer, MeSerializer, WorkspaceSerializer
from workspaces.models import ApiKey
from workspaces.plans import PLANS

CHALLENGE = ("WWW-Authenticate",)
Scope = ApiKey.Scope

UNAUTHENTICATED = (
    known(errors.MissingApiKey, "Send your API key as Authorization: Bearer pr_….", headers=CHALLENGE),
    known(errors.InvalidApiKey, "This API key does not exist.", headers=CHALLENGE),
    known(errors.RevokedApiKey, "This API key was revoked.", headers=CHALLENGE),
    known(errors.ExpiredApiKey, "This API key expired at 2026-11-01T00:00:00+00:00.", headers=CHALLENGE),
)
INSUFFICIENT_SCOPE = known(
    errors.InsufficientScope,
    "This call needs a key of scope full_access.",
    members={"requiredScope": {"enum": Scope.values}},
    example={"requiredScope": "full_access"},
)
WORKSPACE_SUSPENDED = known(errors.WorkspaceSuspended, "This workspace is suspended; nothing can be sent from it.")
PLAN_LIMIT_REACHED = known(
    errors.PlanLimitReached,
    "The free plan has room for 1; delete a domain or change the plan.",
    members={"resource": TEXT, "limit": WHOLE},
    example={"resource": "domains", "limit": 1},
)
QUOTA_EXCEEDED = known(
    errors.QuotaExceeded,
    "The plan allows 500 emails a month; 499 are used and 2 more were asked for.",
    members={
        "limit": WHOLE,
        "used": WHOLE,
        "requested": WHOLE,
        "resetsAt": {"type": "string", "format": "date-time"},
    },
    example={"limit": 500, "used": 499, "requested": 2, "resetsAt": "2026-12-01T00:00:00.000Z"},
)

# Which scopes may make a call; the sentence is part of its description.
READING = "A key of any scope but `sending_access` will do."
SENDING = "A key of scope `full_access` or `sending_access` will do."
FULL = "It needs a key of scope `full_access`."
ANY = "A key of any scope will do."


def keyed_operation(
    operation_id: str,
    summary: str,
    description: str,
    *,
    scope: str,
    problems: Iterable[KnownProblem] = (),
    **options: Any,
) -> Callable[[Any], Any]:
    """Describe an operation that needs a key; see api.schema.operation."""
    of_key = (*UNAUTHENTICATED, RATE_LIMIT_EXCEEDED, *((INSUFFICIENT_SCOPE,) if scope != ANY else ()))
    return operation(operation_id, summary, f"{description}\n\n{scope}", problems=[*problems, *of_key], **options)


class ApiKeyExtension(OpenApiAuthenticationExtension):
    target_class = "workspaces.api.authentication.ApiKeyAuthentication"
    name = "Bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        told = "An API key, made in the dashboard: `Authorization: Bearer pr_…`. A key belongs to one workspace."
        return {"type": "http", "scheme": "bearer", "bearerFormat": "pr_…", "description": told}


refine(KeySerializer, properties={"scope": {"enum": Scope.values}})
refine(WorkspaceSerializer, properties={"plan": {"enum": list(PLANS)}})

ME = {
    "workspace": {"id": "ws_0Uf7kWQ2mX1cVbNq8RtYzA", "name": "Demo", "plan": "pro"},
    "key": {"id": "key_0Uf7kWRb3nC5xZaLs9DfGh", "name": "Website", "scope": "sending_access"},
    "quota": {"limit": 50_000, "used": 1_204, "remaining": 48_796, "resetsAt": "2026-12-01T00:00:00.000Z"},
}

me_schema = extend_schema_view(
    get=keyed_operation(
        "getMe",
        "Get the workspace and the key",
        "Tells which workspace and key the call is made with, and what is left of the month's quota. `limit` and "
        "`remaining` are null on an unlimited plan. A good first call to try a key with.",
        scope=ANY,
        answers=[answer(200, MeSerializer, "The workspace, the key and the quota.", example=ME)],
    )
)
