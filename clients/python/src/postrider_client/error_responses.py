"""Error responses of the API, mapped to exceptions."""

import json
from collections.abc import Mapping
from typing import Any

from postrider_client import errors
from postrider_client.errors import ApiError

BY_CODE: dict[str, type[ApiError]] = {
    "insufficient_scope": errors.InsufficientScope,
    "plan_limit_reached": errors.PlanLimitReached,
    "email_already_sent": errors.EmailAlreadySent,
    "idempotency_key_reuse": errors.IdempotencyKeyReuse,
    "validation_error": errors.ValidationError,
    "recipient_suppressed": errors.RecipientSuppressed,
    "domain_not_registered": errors.DomainNotRegistered,
    "domain_not_verified": errors.DomainNotVerified,
    "stream_not_allowed": errors.StreamNotAllowed,
    "stream_paused": errors.StreamPaused,
    "stream_exists": errors.StreamExists,
    "alert_exists": errors.AlertExists,
    "stream_not_found": errors.StreamNotFound,
    "stream_archived": errors.StreamArchived,
    "invalid_stream": errors.InvalidStream,
    "receiving_domain_taken": errors.ReceivingDomainTaken,
    "receiving_not_active": errors.ReceivingNotActive,
    "received_email_not_found": errors.ReceivedEmailNotFound,
    "recipient_refused": errors.RecipientRefused,
    "test_key_required": errors.TestKeyRequired,
    "not_blocked": errors.NotBlocked,
    "not_forwarded": errors.NotForwarded,
    "not_published": errors.NotPublished,
    "not_unreadable": errors.NotUnreadable,
    "reread_too_soon": errors.RereadTooSoon,
    "template_not_found": errors.TemplateNotFound,
    "template_syntax_error": errors.TemplateSyntaxError,
    "missing_template_variables": errors.MissingTemplateVariables,
    "rate_limit_exceeded": errors.RateLimitExceeded,
    "quota_exceeded": errors.QuotaExceeded,
}
BY_STATUS: dict[int, type[ApiError]] = {
    400: errors.BadRequest,
    401: errors.AuthenticationError,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    413: errors.PayloadTooLarge,
    422: errors.Unprocessable,
    429: errors.RateLimitExceeded,
}


def error_from_response(status: int, *, body: bytes, headers: Mapping[str, str]) -> ApiError:
    """Return the exception for an error response. Proxies may respond with any body, such as HTML."""
    given = _json_of(body)
    problem = {
        **given,
        "status": status,
        "code": given.get("code", "unknown"),
        "detail": given.get("detail") or _fallback_detail(status, headers),
        "requestId": given.get("requestId") or headers.get("X-Request-Id"),
    }
    by_status = BY_STATUS.get(status, errors.ServerError if status >= 500 else ApiError)
    return BY_CODE.get(problem["code"], by_status)(problem, headers=headers)


def _json_of(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _fallback_detail(status: int, headers: Mapping[str, str]) -> str:
    if target := headers.get("Location"):
        return f"The server redirects to {target}. Set base_url to the address of the service."
    return f"The server responded with status {status} and no details."
