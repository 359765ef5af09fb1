"""What a key, a plan or a suspension refuses."""

from typing import Any

from api.errors import Problem


class Unauthenticated(Problem):
    """The base of the four answers to a key that is not good."""

    status = 401

    def __init__(self, detail: str, **members: Any) -> None:
        super().__init__(detail, headers={"WWW-Authenticate": 'Bearer realm="postrider"'}, **members)


class MissingApiKey(Unauthenticated):
    code, title = "missing_api_key", "Missing API key"


class InvalidApiKey(Unauthenticated):
    code, title = "invalid_api_key", "Invalid API key"


class RevokedApiKey(Unauthenticated):
    code, title = "revoked_api_key", "Revoked API key"


class ExpiredApiKey(Unauthenticated):
    code, title = "expired_api_key", "Expired API key"


class InsufficientScope(Problem):
    status, code, title = 403, "insufficient_scope", "Insufficient scope"


class WorkspaceSuspended(Problem):
    status, code, title = 403, "workspace_suspended", "Workspace suspended"


class PlanLimitReached(Problem):
    status, code, title = 403, "plan_limit_reached", "Plan limit reached"


class QuotaExceeded(Problem):
    status, code, title = 429, "quota_exceeded", "Quota exceeded"
