"""Errors as SendGrid's clients expect them: `{errors: [{message, field, help}]}`."""

from http import HTTPStatus
from typing import Any

from interfaces.compat.errors import ProblemMembers, error_handler, is_absent

# Statuses that differ from those of `/v1`.
# https://www.twilio.com/docs/sendgrid/api-reference/mail-send/errors
STATUSES = {
    "validation_error": 400,
    "too_many_attachments": 400,
    "too_many_recipients": 400,
    "template_not_found": 400,
    "missing_template_variables": 400,
    "template_output_too_large": 400,
    "template_syntax_error": 400,
    "stream_not_found": 400,
    "stream_archived": 400,
    "attachments_too_large": 413,
    "domain_not_registered": 403,
    "domain_not_verified": 403,
    "quota_exceeded": 401,
    "unsupported_media_type": 415,
}
# Sentences that SendGrid's users search for, and the field.
MESSAGES = {
    "domain_not_registered": ("The from address does not match a verified Sender Identity.", "from"),
    "domain_not_verified": ("The from address does not match a verified Sender Identity.", "from"),
    "missing_api_key": ("Permission denied, wrong credentials", None),
    "invalid_api_key": ("The provided authorization grant is invalid, expired, or revoked", None),
    "revoked_api_key": ("The provided authorization grant is invalid, expired, or revoked", None),
    "expired_api_key": ("The provided authorization grant is invalid, expired, or revoked", None),
    "insufficient_scope": ("access forbidden", None),
    "quota_exceeded": ("Maximum credits exceeded", None),
    "recipient_capped": ("too many requests", None),
    "rate_limit_exceeded": ("too many requests", None),
    "template_not_found": ("The template_id must be a valid GUID.", "template_id"),
}
# Fields of an email that are the same for all personalizations.
# https://www.twilio.com/docs/sendgrid/api-reference/mail-send/mail-send
WIRE_NAMES = {"html": "content", "text": "content", "replyTo": "reply_to", "tags": "categories",
              "metadata": "custom_args", "scheduledFor": "send_at", "templateId": "template_id",
              "templateData": "dynamic_template_data", "htmlContent": "html_content",
              "textContent": "plain_content", "batchId": "batch_id"}  # fmt: skip
OF_PERSONALIZATION = frozenset({"to", "cc", "bcc"})
SUBSTITUTIONS = "substitutions"


def _status_and_body(problem: ProblemMembers) -> tuple[int, dict[str, Any]]:
    status = HTTPStatus.NOT_IMPLEMENTED if is_absent(problem) else STATUSES.get(problem["code"]) or problem["status"]
    return status, {"errors": error_entries(problem)}


render_error = error_handler(_status_and_body)


def error_entries(problem: ProblemMembers) -> list[dict[str, Any]]:
    """Return an entry for each invalid field, or one for a problem without fields."""
    index = problem.get("index", 0)
    invalid: list[tuple[str, str | None]] = [
        (error["detail"], _field(error["field"], index)) for error in problem.get("errors", ())
    ]
    entries = invalid or [MESSAGES.get(problem["code"], (problem["detail"], None))]
    return [{"message": message, "field": field, "help": None} for message, field in entries]


def _field(native: str, index: int) -> str:
    """Return SendGrid's path of a field, such as personalizations.0.to.1.email."""
    if native.startswith(SUBSTITUTIONS):
        # Names of substitutions have any characters.
        return f"personalizations.{index}.{native}"
    name, _, rest = native.partition("[")
    position, _, tail = rest.partition("]")
    path = ".".join(part for part in (WIRE_NAMES.get(name, name), position, tail.lstrip(".")) if part)
    return f"personalizations.{index}.{path}.email" if name in OF_PERSONALIZATION else path
