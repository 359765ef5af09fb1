"""API errors: one JSON shape for all, RFC 9457.

An app defines its errors by subclassing `Problem`; a service raises one, and the exception handler renders it. The
docstring of each class is its entry on the error catalogue page: the meaning, then the advice. The OpenAPI document
derives the schema of an error from its example.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

METHOD_NOT_ALLOWED_DETAIL = "This path does not support this method. The Allow header lists the supported methods."
NOT_ACCEPTABLE_DETAIL = "This path returns application/json. Change or omit the Accept header."


@dataclass(frozen=True)
class Member:
    """A member of an error body, as the OpenAPI document describes it. The example may contain further members."""

    description: str
    example: Any
    is_optional: bool = False


def field_path(example: str, *, is_optional: bool = False) -> Member:
    return Member("The path of the field, such as `to[0]`.", example, is_optional)


class Problem(Exception):
    """An API error with a status, a stable code and a message that explains how to fix the request.

    members are added to the JSON body, headers to the response headers.
    """

    status: ClassVar[int]
    code: ClassVar[str]
    title: ClassVar[str]
    # The documented detail; an error without one is not part of /v1.
    example: ClassVar[str] = ""
    # The members that this code adds to the common ones.
    added_members: ClassVar[Mapping[str, Member]] = {}
    header_names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, detail: str, *, headers: dict[str, str] | None = None, **members: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.headers = headers or {}
        self.members = members


def all_problems(parent: type[Problem] = Problem) -> Iterator[type[Problem]]:
    """Yield all subclasses of a problem class that have a code."""
    for problem in parent.__subclasses__():
        if hasattr(problem, "code"):
            yield problem
        yield from all_problems(problem)


def documented_problems() -> dict[str, type[Problem]]:
    """Return the errors of /v1 by code, sorted: the order of `__subclasses__` changes with the order of imports."""
    documented = (problem for problem in all_problems() if problem.example)
    return {problem.code: problem for problem in sorted(documented, key=lambda problem: (problem.status, problem.code))}


def problem_members(problem: Problem) -> dict[str, Any]:
    """Return the members of an error body that describe the problem, and not the request."""
    members = {"title": problem.title, "status": problem.status, "code": problem.code, "detail": problem.detail}
    return {**members, **problem.members}


class InvalidJson(Problem):
    """The body is not a single, unambiguous JSON object.

    Send a JSON object in UTF-8 with `Content-Type: application/json`. Besides syntax errors, the API rejects duplicate
    keys, nesting deeper than 32 levels, NaN, infinite numbers, numbers longer than 64 digits, and strings that contain
    NUL characters or unpaired surrogates.
    """

    status, code, title = 400, "invalid_json", "Invalid JSON"
    example = "Expecting ',' delimiter at line 3, column 5."


class NotFound(Problem):
    """The path does not exist, or your workspace has no object with this id.

    Check the id, and check that the API key belongs to the workspace that owns the object. Objects of other workspaces
    and objects deleted by retention return the same error as objects that never existed.
    """

    status, code, title = 404, "not_found", "Not found"
    example = "Not found in this workspace."

    def __init__(self, detail: str = example, **members: Any) -> None:
        super().__init__(detail, **members)


class MethodNotAllowed(Problem):
    """The path exists but does not support this method.

    The `Allow` header lists the supported methods.
    """

    status, code, title = 405, "method_not_allowed", "Method not allowed"
    example = METHOD_NOT_ALLOWED_DETAIL
    header_names = ("Allow",)


class NotAcceptable(Problem):
    """The `Accept` header requests a format that is not available.

    Responses are `application/json`; the export is `text/csv`. Omit the header or send `*/*`.
    """

    status, code, title = 406, "not_acceptable", "Not acceptable"
    example = NOT_ACCEPTABLE_DETAIL


class LengthRequired(Problem):
    """The request has no valid `Content-Length` header.

    Send the length of the body in bytes; chunked bodies are not supported. Most HTTP clients set the header
    automatically unless the body is streamed.
    """

    status, code, title = 411, "length_required", "Length required"
    example = "Send a Content-Length header; chunked bodies are not supported."


class PayloadTooLarge(Problem):
    """The body is larger than this operation allows: 20 MiB for `send` and `batch`, 5 MiB for templates, else 1 MiB.

    Send smaller attachments, or link to the files instead.
    """

    status, code, title = 413, "payload_too_large", "Payload too large"
    example = "The body has 31,457,280 bytes; at most 20,971,520 are allowed."


class UnsupportedMediaType(Problem):
    """The body is not declared as JSON, or it is compressed.

    Send it uncompressed, with `Content-Type: application/json`.
    """

    status, code, title = 415, "unsupported_media_type", "Unsupported media type"
    example = "Send the body as application/json."


class InvalidFields(Problem):
    """One or more fields of the body or the query string are invalid.

    `errors` lists every invalid field with its path in `field`, a `code` and a message. `detail` is the first of them
    and the number of others. Unknown fields and parameters are rejected too, with a suggestion for the one that was
    probably meant: if `scheduled_at` were ignored, the email would be sent immediately.
    """

    status, code, title = 422, "validation_error", "Validation failed"
    example = "to[1]: 'ada@' is not an email address. 1 more error."
    added_members: ClassVar = {
        "errors": Member(
            "All invalid fields.",
            [
                {
                    "field": field_path("to[1]"),
                    "code": Member("The machine-readable code of the error.", "invalid_email"),
                    "detail": Member("A human-readable explanation.", "'ada@' is not an email address."),
                },
                {
                    "field": "scheduledfor",
                    "code": "unknown_field",
                    "detail": "Unknown field 'scheduledfor'. Did you mean 'scheduledFor'?",
                },
            ],
        )
    }

    def __init__(self, errors: list[dict[str, str]]) -> None:
        first, others = errors[0], len(errors) - 1
        count = f" {others:,} more error{'s' if others > 1 else ''}." if others else ""
        super().__init__(f"{first['field']}: {first['detail']}{count}", errors=errors)


class RateLimitExceeded(Problem):
    """The workspace exceeded its rate limit, or your address made too many requests without a valid API key.

    Wait for the number of seconds in `Retry-After` before the next request. `RateLimit-Remaining` is the number of
    requests left; a batch request accepts up to 500 emails.
    """

    status, code, title = 429, "rate_limit_exceeded", "Rate limit exceeded"
    example = (
        "A workspace can make 50 requests per second, with bursts of up to 100. Try again in 1 s; see Retry-After."
    )
    header_names = ("Retry-After",)


class TooManyConcurrentRequests(RateLimitExceeded):
    """Too many requests of the workspace are being answered, or too many of its downloads and event streams are open.

    Nothing was accepted. Wait for the number of seconds in `Retry-After`, and send fewer requests at a time: the number
    of requests per second may be as before.
    """

    code, title = "too_many_concurrent_requests", "Too many concurrent requests"
    example = "Too many requests of this workspace are waiting. Nothing was accepted; try again with fewer at a time."


class ProcessorTimeExceeded(RateLimitExceeded):
    """The requests of the workspace used more processor time than its share.

    Nothing was accepted. For each 0.05 seconds of processor time, a request counts as five more, after its response.
    Large batches and templates with long loops do so; wait for the number of seconds in `Retry-After`.
    """

    code, title = "processor_time_exceeded", "Processor time exceeded"
    example = (
        "The last requests used more processor time than the share of this workspace. Nothing was accepted; try again "
        "in 2 s; see Retry-After."
    )


class ClientClosedRequest(Problem):
    """The client closed its connection before its batch was accepted. Nobody reads it: it is for the log.

    The status is that of nginx.
    """

    status, code, title = 499, "client_closed_request", "Client closed request"


class InternalError(Problem):
    """An unexpected error occurred on the server.

    Nothing was accepted. Try again later; if the error persists, send the `requestId` to the operator of this server.
    With an idempotency key, retrying never sends an email twice.
    """

    status, code, title = 500, "internal_error", "Internal error"
    example = "An internal error occurred. Nothing was accepted. Include the requestId when you ask for help."


class ServiceUnavailable(Problem):
    """The server cannot reach its database.

    Retry after the number of seconds in `Retry-After`, with the same idempotency key: if the first request was
    accepted after all, you receive the original response and nothing is sent twice.
    """

    status, code, title = 503, "service_unavailable", "Service unavailable"
    example = (
        "The database is unavailable. Try again with the same idempotency key: an email that was already accepted "
        "is not sent twice."
    )
    header_names = ("Retry-After",)


class Overloaded(Problem):
    """The server is receiving more requests than it can process in time, and this request waited too long.

    The request was not processed, and nothing was accepted. Wait for the number of seconds in `Retry-After` and send
    fewer concurrent requests; a batch request accepts up to 500 emails.
    """

    status, code, title = 503, "overloaded", "Overloaded"
    example = "The server is receiving more requests than it can process. Nothing was accepted; try again."
    header_names = ("Retry-After",)


def internal_error() -> InternalError:
    return InternalError(InternalError.example)


def service_unavailable() -> ServiceUnavailable:
    return ServiceUnavailable(ServiceUnavailable.example, headers={"Retry-After": "5"})


def overloaded() -> Overloaded:
    return Overloaded(Overloaded.example, headers={"Retry-After": "2"})


def too_many_waiting() -> TooManyConcurrentRequests:
    """A request waited while others of the same workspace had its share of the threads."""
    return TooManyConcurrentRequests(TooManyConcurrentRequests.example, headers={"Retry-After": "2"})
