"""Errors as Postmark's clients expect them: `{ErrorCode, Message}`. Clients parse some of the sentences."""

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from rest_framework.response import Response

from interfaces.compat.errors import ProblemMembers, error_handler, first_field_error, is_absent
from interfaces.compat.postmark.names import INBOUND_CODE
from streams.errors import StreamNotFound

# The status and ErrorCode of each problem.
# https://postmarkapp.com/developer/api/overview#error-codes
ERRORS: dict[str, tuple[int, int]] = {
    "missing_api_key": (401, 10),
    "invalid_api_key": (401, 10),
    "revoked_api_key": (401, 10),
    "expired_api_key": (401, 10),
    "insufficient_scope": (401, 10),
    "network_not_allowed": (401, 10),
    "domain_not_allowed": (422, 400),
    "template_not_allowed": (422, 1101),
    "domain_not_registered": (422, 400),
    "domain_not_verified": (422, 401),
    "invalid_json": (422, 402),
    "quota_exceeded": (422, 405),
    "workspace_suspended": (422, 412),
    "recipient_suppressed": (422, 406),
    "recipient_not_allowed": (422, 406),
    "attachments_too_large": (422, 300),
    "too_many_attachments": (422, 300),
    "too_many_recipients": (422, 300),
    "template_not_found": (422, 1101),
    "template_syntax_error": (422, 1122),
    "template_in_use": (422, 1130),
    "stream_not_found": (422, 1235),
    "stream_exists": (422, 1230),
    # https://postmarkapp.com/developer/api/overview#error-codes
    "not_blocked": (422, 702),
    "not_published": (422, 703),
    "not_found": (404, 404),
    "recipient_capped": (429, 429),
    "rate_limit_exceeded": (429, 429),
    "too_many_concurrent_requests": (429, 429),
    "processor_time_exceeded": (429, 429),
    "service_unavailable": (503, 100),
    "overloaded": (503, 100),
    "internal_error": (500, 500),
}
INVALID_EMAIL = 300
# The code of a field whose error is a sentence of Postmark.
UNKNOWN_SERVER = "unknown_server"
# The codes of a layout without one place of the content, and of a template that has another type elsewhere.
LAYOUT_PLACEHOLDER, OTHER_TYPE = "layout_content", "other_type"
# Postmark's codes of invalid fields, by ours; INVALID_EMAIL for all others.
FIELD_CODES = {
    INBOUND_CODE: 1236, "stream_exists": 1230, "default_stream": 1229, UNKNOWN_SERVER: 601, LAYOUT_PLACEHOLDER: 1131,
    OTHER_TYPE: 1125,
}  # fmt: skip
# Codes for invalid parameters of a list: of bounces, and of all others.
# https://postmarkapp.com/developer/api/overview#error-codes
BOUNCE_QUERY, MESSAGE_QUERY = 408, 700
# The code for a path with the id of an unknown stream.
# https://postmarkapp.com/developer/api/overview#error-codes
UNKNOWN_STREAM_ID = 1226
STREAM_ID_NOT_FOUND = "The message stream for the provided 'ID' was not found."
# Sentences that Postmark's users search for.
NO_HEADER = (
    "No Account or Server API tokens were supplied in the HTTP headers. Please add a header for either "
    "X-Postmark-Server-Token or X-Postmark-Account-Token."
)
INVALID_HEADER = (
    "The Server Token you provided in the X-Postmark-Server-Token request header was invalid. Please verify that you "
    "are using a valid token."
)
NO_SIGNATURE = (
    "The 'From' address you supplied (@{domain}) is not a Sender Signature on your account. Please add and confirm "
    "this address in order to be able to use it in the 'From' field of your messages."
)
SENTENCES = {
    "missing_api_key": NO_HEADER,
    "invalid_api_key": INVALID_HEADER,
    "revoked_api_key": INVALID_HEADER,
    "expired_api_key": INVALID_HEADER,
    "domain_not_registered": NO_SIGNATURE,
}
ILLEGAL_ADDRESS = "Illegal email address "
INACTIVE_RECIPIENTS = (
    "Inactive recipients are ones that have generated a hard bounce, a spam complaint, or a manual suppression."
)
# Postmark's spelling of a field in its sentences about addresses.
ADDRESS_FIELDS = {"from": "From", "to": "To", "cc": "Cc", "bcc": "Bcc", "replyTo": "Reply-To"}


def _status_and_body(problem: ProblemMembers) -> tuple[int, dict[str, Any]]:
    status, code = _status_and_code(problem)
    return status, {"ErrorCode": code, "Message": error_message(problem)}


def error_body(problem: ProblemMembers) -> dict[str, Any]:
    return _status_and_body(problem)[1]


render_error = error_handler(_status_and_body)


def query_error_handler(code: int) -> Callable[[Exception, dict[str, Any]], Response]:
    """Return DRF's exception handler for lists, whose invalid parameters have an error code of their own."""

    def render(problem: ProblemMembers) -> tuple[int, dict[str, Any]]:
        status, body = _status_and_body(problem)
        return status, body | ({"ErrorCode": code} if "errors" in problem else {})

    return error_handler(render)


def render_stream_error(error: Exception, context: dict[str, Any]) -> Response:
    """Return the response for an error of a path with the id of a stream; DRF's exception handler."""
    if isinstance(error, StreamNotFound):
        body = {"ErrorCode": UNKNOWN_STREAM_ID, "Message": STREAM_ID_NOT_FOUND}
        return Response(body, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return render_error(error, context)


def error_message(problem: ProblemMembers) -> str:
    if problem["code"] in {"recipient_suppressed", "recipient_not_allowed"}:
        addresses = inactive_addresses(entry["email"] for entry in problem["recipients"])
        return (
            "You tried to send to recipient(s) that have been marked as inactive. "
            f"Found inactive addresses: {addresses}. {INACTIVE_RECIPIENTS}"
        )
    if problem["code"] == "stream_not_found":
        return f"The stream provided: {str(problem['stream'])!r} does not exist on this server."
    invalid = first_field_error(problem)
    if not invalid:
        sentence = SENTENCES.get(problem["code"], str(problem["detail"]))
        return sentence.replace("{domain}", problem.get("domain", ""))
    if invalid["code"] == UNKNOWN_SERVER:
        return invalid["detail"]
    return _field_message(invalid["field"], invalid["detail"])


def partial_message(suppressed: Iterable[str]) -> str:
    """Return the message about an accepted email with suppressed recipients."""
    addresses = inactive_addresses(suppressed)
    return f"Message OK, but will not deliver to these inactive addresses: {addresses}. {INACTIVE_RECIPIENTS}"


def inactive_addresses(addresses: Iterable[str]) -> str:
    return ", ".join(address.lower() for address in addresses)


def _field_message(field: str, detail: str) -> str:
    name = ADDRESS_FIELDS.get(field.partition("[")[0])
    if name == "From":
        return f"Invalid 'From' address: {detail.removeprefix(ILLEGAL_ADDRESS)}"
    return f"Error parsing '{name}': {detail}" if name else f"{field}: {detail}"


def _status_and_code(problem: ProblemMembers) -> tuple[int, int]:
    if "errors" in problem:
        code = first_field_error(problem).get("code", "")
        return HTTPStatus.UNPROCESSABLE_ENTITY, FIELD_CODES.get(code, INVALID_EMAIL)
    if is_absent(problem):
        return HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.NOT_IMPLEMENTED
    return ERRORS.get(problem["code"], (problem["status"], INVALID_EMAIL))
