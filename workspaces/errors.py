"""What a key, a plan or a suspension refuses."""

from typing import Any

from api.errors import Problem


class Unauthenticated(Problem):
    """The base of the four answers to a key that is not good."""

    status = 401

    def __init__(self, detail: str, **members: Any) -> None:
        super().__init__(detail, headers={"WWW-Authenticate": 'Bearer realm="postrider"'}, **members)


class MissingApiKey(Unauthenticated):
    """The request has no `Authorization` header.

    Send `Authorization: Bearer pr_…`. Keys are made in the dashboard.
    """

    code, title = "missing_api_key", "Missing API key"


class InvalidApiKey(Unauthenticated):
    """The `Authorization` header holds no key of this server.

    Copy the key again, whole, as it was shown when it was made; a key that was lost cannot be shown again, make a new
    one.
    """

    code, title = "invalid_api_key", "Invalid API key"


class RevokedApiKey(Unauthenticated):
    """The key is right, but somebody revoked it.

    Make a new key in the dashboard.
    """

    code, title = "revoked_api_key", "Revoked API key"


class ExpiredApiKey(Unauthenticated):
    """The key is right, but its time is over.

    Make a new key in the dashboard, with a later expiry or none.
    """

    code, title = "expired_api_key", "Expired API key"


class InsufficientScope(Problem):
    """The key's scope does not allow this call.

    `requiredScope` names the smallest scope that does. A key's scope cannot change: make another key.
    """

    status, code, title = 403, "insufficient_scope", "Insufficient scope"


class WorkspaceSuspended(Problem):
    """The workspace is suspended, so that nothing can be sent from it.

    Reading still works, and mail that was accepted is kept. Ask whoever runs this server.
    """

    status, code, title = 403, "workspace_suspended", "Workspace suspended"


class PlanLimitReached(Problem):
    """The workspace holds as many of something as its plan, or the service, allows.

    `resource` and `limit` tell which and how many. Delete what you do not need, or change the plan.
    """

    status, code, title = 403, "plan_limit_reached", "Plan limit reached"


class QuotaExceeded(Problem):
    """The month's quota does not cover this request; of a batch, nothing was accepted.

    `used` of `limit` are used and `requested` more were asked for; the count begins anew at `resetsAt`. Send less,
    wait, or change the plan. Trying again at once does not help, so there is no `Retry-After`.
    """

    status, code, title = 429, "quota_exceeded", "Quota exceeded"
