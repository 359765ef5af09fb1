"""Errors as Resend's clients expect them: `{statusCode, name, message}`."""

from http import HTTPStatus
from typing import Any

from interfaces.compat.errors import ProblemMembers, error_handler, first_field_error, is_absent

# The status and name of each problem; Resend's SDKs choose the exception by the pair. A domain that cannot send is
# 403 with the name of a validation error there, too.
# https://resend.com/docs/api-reference/errors
ERRORS: dict[str, tuple[int, str]] = {
    "missing_api_key": (401, "missing_api_key"),
    "invalid_api_key": (403, "invalid_api_key"),
    "revoked_api_key": (403, "invalid_api_key"),
    "expired_api_key": (403, "invalid_api_key"),
    "insufficient_scope": (401, "restricted_api_key"),
    "network_not_allowed": (403, "invalid_api_key"),
    "domain_not_allowed": (403, "validation_error"),
    "template_not_allowed": (403, "validation_error"),
    "domain_not_registered": (403, "validation_error"),
    "domain_not_verified": (403, "validation_error"),
    "workspace_suspended": (403, "validation_error"),
    "plan_limit_reached": (403, "validation_error"),
    "domain_already_exists": (403, "validation_error"),
    "tracking_host_taken": (403, "validation_error"),
    "not_found": (404, "not_found"),
    "template_not_found": (404, "not_found"),
    "method_not_allowed": (405, "method_not_allowed"),
    "invalid_json": (400, "validation_error"),
    "invalid_idempotency_key": (400, "invalid_idempotency_key"),
    "idempotency_key_reuse": (409, "invalid_idempotent_request"),
    "idempotency_in_progress": (409, "concurrent_idempotent_requests"),
    "attachments_too_large": (422, "invalid_attachment"),
    "too_many_attachments": (422, "invalid_attachment"),
    "recipient_capped": (429, "rate_limit_exceeded"),
    "rate_limit_exceeded": (429, "rate_limit_exceeded"),
    "too_many_concurrent_requests": (429, "rate_limit_exceeded"),
    "processor_time_exceeded": (429, "rate_limit_exceeded"),
    "quota_exceeded": (429, "monthly_quota_exceeded"),
    "internal_error": (500, "application_error"),
}
# Names by the invalid field; the prefix covers items of a list.
FIELD_NAMES = (("from", "invalid_from_address"), ("attachments", "invalid_attachment"))
# https://resend.com/docs/api-reference/emails/send-email
WIRE_NAMES = {"replyTo": "reply_to", "scheduledFor": "scheduled_at", "templateId": "template.id",
              "templateData": "template.variables", "htmlContent": "html", "textContent": "text", "url": "endpoint",
              "active": "status", "openTracking": "open_tracking", "clickTracking": "click_tracking",
              "tracking.subdomain": "tracking_subdomain"}  # fmt: skip
# An empty text is a missing one.
MISSING = frozenset({"required", "blank"})
# An endpoint that Resend has and Postrider has not.
ABSENT = (501, "application_error")


def error_body(problem: ProblemMembers) -> dict[str, Any]:
    status, name = _status_and_name(problem)
    return {"statusCode": status, "name": name, "message": error_message(problem)}


def _status_and_body(problem: ProblemMembers) -> tuple[int, dict[str, Any]]:
    body = error_body(problem)
    return body["statusCode"], body


render_error = error_handler(_status_and_body)


def error_message(problem: ProblemMembers) -> str:
    """Return the message of a problem: of a validation error, that of its first field."""
    invalid = first_field_error(problem)
    if not invalid:
        return _with_wire_name(problem)
    field, dot, rest = invalid["field"].partition("[")
    name = f"{WIRE_NAMES.get(field, field)}{dot}{rest}"
    if invalid["code"] in MISSING:
        return f"Missing `{name}` field."
    return f"Invalid `{name}` field. {invalid['detail']}"


def _with_wire_name(problem: ProblemMembers) -> str:
    """Return the detail of a problem, which may begin with the name of a field."""
    field, detail = problem.get("field"), str(problem["detail"])
    return WIRE_NAMES[field] + detail.removeprefix(field) if field in WIRE_NAMES else detail


def _status_and_name(problem: ProblemMembers) -> tuple[int, str]:
    if is_absent(problem):
        return ABSENT
    invalid = first_field_error(problem)
    if invalid.get("code") in MISSING:
        return 422, "missing_required_field"
    for field, name in FIELD_NAMES:
        if invalid.get("field", "").startswith(field):
            return 422, name
    status = problem["status"]
    default = "application_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "validation_error"
    return ERRORS.get(problem["code"], (status, default))
