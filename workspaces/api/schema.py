"""OpenAPI descriptions of authenticated operations and of `GET /v1/me`."""

from collections.abc import Callable, Iterable
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import extend_schema_view

from api.schema import INTEGER, RATE_LIMIT_EXCEEDED, TEXT, ProblemDescription, describe_problem, operation, response
from api.schema_fields import refine_schema
from workspaces import errors
from workspaces.api.serializers import KeySerializer, MeSerializer, WorkspaceSerializer
from workspaces.models import ApiKey
from workspaces.plans import PLANS

CHALLENGE = ("WWW-Authenticate",)
Scope = ApiKey.Scope

UNAUTHENTICATED = (
    describe_problem(errors.MissingApiKey, "Send your API key as Authorization: Bearer pr_….", headers=CHALLENGE),
    describe_problem(
        errors.InvalidApiKey,
        "This API key does not exist. Check that you copied the complete key.",
        headers=CHALLENGE,
    ),
    describe_problem(
        errors.RevokedApiKey, "This API key was revoked. Create a new one in the dashboard.", headers=CHALLENGE
    ),
    describe_problem(
        errors.ExpiredApiKey,
        "This API key expired at 2026-11-01T00:00:00+00:00. Create a new one in the dashboard.",
        headers=CHALLENGE,
    ),
)
INSUFFICIENT_SCOPE = describe_problem(
    errors.InsufficientScope,
    "This request requires an API key with scope full_access.",
    members={"requiredScope": {"enum": Scope.values}},
    example={"requiredScope": "full_access"},
)
WORKSPACE_SUSPENDED = describe_problem(
    errors.WorkspaceSuspended,
    "This workspace is suspended and cannot send email. Contact the operator of this server.",
)
PLAN_LIMIT_REACHED = describe_problem(
    errors.PlanLimitReached,
    "The domain limit of the free plan (1) is reached. Delete a domain or change the plan.",
    members={"resource": TEXT, "limit": INTEGER},
    example={"resource": "domains", "limit": 1},
)
QUOTA_EXCEEDED = describe_problem(
    errors.QuotaExceeded,
    "The plan allows 500 emails per month; 499 are used and this request needs 2 more.",
    members={
        "limit": INTEGER,
        "used": INTEGER,
        "requested": INTEGER,
        "resetsAt": {"type": "string", "format": "date-time"},
    },
    example={"limit": 500, "used": 499, "requested": 2, "resetsAt": "2026-12-01T00:00:00.000Z"},
)

# The scopes that an operation accepts, appended to its description.
READING = "Requires an API key with scope `read_only` or `full_access`."
SENDING = "Requires an API key with scope `sending_access` or `full_access`."
FULL = "Requires an API key with scope `full_access`."
ANY = "Accepts an API key with any scope."


def keyed_operation(
    operation_id: str,
    summary: str,
    description: str,
    *,
    scope: str,
    problems: Iterable[ProblemDescription] = (),
    **options: Any,
) -> Callable[[Any], Any]:
    """Describe an operation that requires an API key; see api.schema.operation."""
    of_key = (*UNAUTHENTICATED, RATE_LIMIT_EXCEEDED, *((INSUFFICIENT_SCOPE,) if scope != ANY else ()))
    return operation(operation_id, summary, f"{description}\n\n{scope}", problems=[*problems, *of_key], **options)


class ApiKeyExtension(OpenApiAuthenticationExtension):
    target_class = "workspaces.api.authentication.ApiKeyAuthentication"
    name = "Bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        description = "An API key from the dashboard: `Authorization: Bearer pr_…`. A key belongs to one workspace."
        return {"type": "http", "scheme": "bearer", "bearerFormat": "pr_…", "description": description}


refine_schema(KeySerializer, properties={"scope": {"enum": Scope.values}})
refine_schema(WorkspaceSerializer, properties={"plan": {"enum": list(PLANS)}})

ME = {
    "workspace": {"id": "ws_0Uf7kWQ2mX1cVbNq8RtYzA", "name": "Demo", "plan": "pro"},
    "key": {"id": "key_0Uf7kWRb3nC5xZaLs9DfGh", "name": "Website", "scope": "sending_access"},
    "quota": {"limit": 50_000, "used": 1_204, "remaining": 48_796, "resetsAt": "2026-12-01T00:00:00.000Z"},
}

me_schema = extend_schema_view(
    get=keyed_operation(
        "getMe",
        "Get the workspace and the key",
        "Returns the workspace and API key of the request, and the remaining monthly quota. `limit` and `remaining` "
        "are null on an unlimited plan. Use it to test a key.",
        scope=ANY,
        responses=[response(200, MeSerializer, "The workspace, the key and the quota.", example=ME)],
    )
)
