"""Errors of authentication, scopes, plan limits, quota and suspension."""

from typing import Any, ClassVar

from core.api.errors import Member, Problem, field_path


class Unauthenticated(Problem):
    """Base class of the four 401 errors."""

    status = 401
    header_names = ("WWW-Authenticate",)

    def __init__(self, detail: str, **members: Any) -> None:
        super().__init__(detail, headers={"WWW-Authenticate": 'Bearer realm="postrider"'}, **members)


class MissingApiKey(Unauthenticated):
    """The request has no `Authorization` header.

    Send `Authorization: Bearer pr_…`. You can create keys in the dashboard.
    """

    code, title = "missing_api_key", "Missing API key"
    example = "Send your API key as Authorization: Bearer pr_…."


class InvalidApiKey(Unauthenticated):
    """The `Authorization` header does not contain a valid API key.

    Check that you copied the complete key. A lost key cannot be shown again; create a new one.
    """

    code, title = "invalid_api_key", "Invalid API key"
    example = "This API key does not exist. Check that you copied the complete key."


class RevokedApiKey(Unauthenticated):
    """The API key was revoked.

    Create a new key in the dashboard.
    """

    code, title = "revoked_api_key", "Revoked API key"
    example = "This API key was revoked. Create a new one in the dashboard."


class ExpiredApiKey(Unauthenticated):
    """The API key has expired.

    Create a new key in the dashboard, with a later expiry date or none.
    """

    code, title = "expired_api_key", "Expired API key"
    example = "This API key expired at 2026-11-01T00:00:00+00:00. Create a new one in the dashboard."


class InsufficientScope(Problem):
    """The key's scope does not allow this request.

    `requiredScope` is the smallest scope that does. The scope of a key cannot be changed; create another key.
    """

    status, code, title = 403, "insufficient_scope", "Insufficient scope"
    example = "This request requires an API key with scope full_access."
    added_members: ClassVar = {
        "requiredScope": Member(
            "A scope that allows the operation, or `management` for a management key.", "full_access"
        ),
    }


class NetworkNotAllowed(Problem):
    """The API key is limited to other networks than the one of this request.

    `address` is the client's address as Postrider sees it. Send the request from one of the networks in
    `allowedNetworks`, or use another key.
    """

    status, code, title = 403, "network_not_allowed", "Network not allowed"
    example = "This API key can be used from 203.0.113.0/24 only; this request came from 198.51.100.7."
    added_members: ClassVar = {
        "address": Member("The address of the client.", "198.51.100.7"),
        "allowedNetworks": Member("The networks from which the key can be used.", ["203.0.113.0/24"]),
    }


class DomainNotAllowed(Problem):
    """The API key is limited to other sending domains.

    `field` is the field with the domain. Send from one of the domains in `allowedDomains`, or use another key.
    """

    status, code, title = 403, "domain_not_allowed", "Domain not allowed"
    example = "This API key can send from shop.example only, not from blog.example."
    added_members: ClassVar = {
        "field": field_path("from"),
        "domain": Member("The domain of the sender.", "blog.example"),
        "allowedDomains": Member("The domains that the key can send from.", ["shop.example"]),
    }


class TemplateNotAllowed(Problem):
    """The API key is limited to other templates.

    Send with one of the templates in `allowedTemplates`, or use another key. The key cannot send emails without a
    template.
    """

    status, code, title = 403, "template_not_allowed", "Template not allowed"
    example = "This API key can send with the templates welcome and receipt only."
    added_members: ClassVar = {
        "field": field_path("templateId"),
        "allowedTemplates": Member("The templates that the key can send with.", ["welcome", "receipt"]),
    }


class StreamNotAllowed(Problem):
    """The API key is limited to other streams.

    Send in one of the streams in `allowedStreams`, or use another key.
    """

    status, code, title = 403, "stream_not_allowed", "Stream not allowed"
    example = "This API key can send in these streams only: receipts. Use another key."
    added_members: ClassVar = {
        "field": field_path("stream"),
        "stream": Member("The id of the stream of the request.", "newsletter"),
        "allowedStreams": Member("The streams that the key can send in.", ["receipts"]),
    }


class WorkspaceSuspended(Problem):
    """The workspace is suspended and cannot send emails.

    Reading still works, and accepted emails are kept. Contact the operator of this server.
    """

    status, code, title = 403, "workspace_suspended", "Workspace suspended"
    example = "This workspace is suspended and cannot send email. Contact the operator of this server."


class WorkspaceDeleted(Problem):
    """The workspace is deleted: its API keys do not work, and nothing is sent.

    Its data is kept until the time in `deletesAt`. Ask the operator of this server to restore it before that.
    """

    status, code, title = 403, "workspace_deleted", "Workspace deleted"
    example = "This workspace is deleted. It can be restored until 2026-12-01T08:12:44.102Z."
    added_members: ClassVar = {
        "deletesAt": Member("The time at which the data of the workspace is deleted.", "2026-12-01T08:12:44.102Z"),
    }


class PlanLimitReached(Problem):
    """The workspace has reached a limit of its plan or of the service.

    `resource` is the limited resource and `limit` its maximum number. Delete unused objects, or change the plan.
    """

    status, code, title = 403, "plan_limit_reached", "Plan limit reached"
    example = "The domain limit of the free plan (1) is reached. Delete a domain or change the plan."
    added_members: ClassVar = {
        "resource": Member("The resource whose limit is reached.", "domains"),
        "limit": Member("The number that the plan allows.", 1),
    }


class QuotaExceeded(Problem):
    """The monthly quota does not cover this request. Nothing was accepted, not even part of a batch.

    `used` of `limit` units are used and the request needs `requested` more; the quota resets at `resetsAt`. Send fewer
    emails, wait, or change the plan. An immediate retry does not help, so there is no `Retry-After`.
    """

    status, code, title = 429, "quota_exceeded", "Quota exceeded"
    example = "The plan allows 500 emails per month; 499 are used and this request needs 2 more."
    added_members: ClassVar = {
        "limit": Member("The number of emails per month.", 500),
        "used": Member("The number of emails used this month.", 499),
        "requested": Member("The number of emails in the request.", 2),
        "resetsAt": Member("The time at which the quota starts again.", "2026-12-01T00:00:00.000Z"),
    }
