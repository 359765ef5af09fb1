"""The problems that the API answers with: RFC 9457, one shape for all.

An app names its own by subclassing `Problem`; a service raises it, the handler turns it into the answer.
"""

from typing import Any, ClassVar


class Problem(Exception):
    """A refusal with a status, a stable code and a sentence that says what to change.

    members are added to the answer as they are, headers to its headers.
    """

    status: ClassVar[int]
    code: ClassVar[str]
    title: ClassVar[str]

    def __init__(self, detail: str, *, headers: dict[str, str] | None = None, **members: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.headers = headers or {}
        self.members = members


class InvalidJson(Problem):
    status, code, title = 400, "invalid_json", "Invalid JSON"


class NotFound(Problem):
    status, code, title = 404, "not_found", "Not found"


class MethodNotAllowed(Problem):
    status, code, title = 405, "method_not_allowed", "Method not allowed"


class NotAcceptable(Problem):
    status, code, title = 406, "not_acceptable", "Not acceptable"


class LengthRequired(Problem):
    status, code, title = 411, "length_required", "Length required"


class PayloadTooLarge(Problem):
    status, code, title = 413, "payload_too_large", "Payload too large"


class UnsupportedMediaType(Problem):
    status, code, title = 415, "unsupported_media_type", "Unsupported media type"


class InvalidFields(Problem):
    status, code, title = 422, "validation_error", "Validation failed"


class RateLimitExceeded(Problem):
    status, code, title = 429, "rate_limit_exceeded", "Rate limit exceeded"


class InternalError(Problem):
    status, code, title = 500, "internal_error", "Internal error"


class ServiceUnavailable(Problem):
    status, code, title = 503, "service_unavailable", "Service unavailable"


def internal_error() -> InternalError:
    return InternalError("Something went wrong on our side. Nothing was accepted; name the requestId when you ask.")


def service_unavailable() -> ServiceUnavailable:
    return ServiceUnavailable(
        "The database cannot be reached. Nothing was accepted unless an idempotency key says otherwise; try again.",
        headers={"Retry-After": "5"},
    )
