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
    """The body cannot be read as one JSON object, or could be read in two ways.

    Send an object in UTF-8 with `Content-Type: application/json`. Besides plain syntax errors these are refused: a key
    given twice, nesting deeper than 32 levels, NaN, numbers that are infinite or longer than 64 digits, NUL characters
    and half surrogate pairs in strings.
    """

    status, code, title = 400, "invalid_json", "Invalid JSON"


class NotFound(Problem):
    """There is no such path, or nothing with this id in your workspace.

    Check the id, and that the key belongs to the workspace that owns it. What another workspace owns, and what
    retention has deleted, is answered like what never existed.
    """

    status, code, title = 404, "not_found", "Not found"


class MethodNotAllowed(Problem):
    """The path exists, but does not take this method.

    The `Allow` header names those that it takes.
    """

    status, code, title = 405, "method_not_allowed", "Method not allowed"


class NotAcceptable(Problem):
    """The `Accept` header asks for a format that the answer does not have.

    Answers are `application/json`, the export is `text/csv`. Leave the header out, or send `*/*`.
    """

    status, code, title = 406, "not_acceptable", "Not acceptable"


class LengthRequired(Problem):
    """The body came without a usable `Content-Length`.

    Send the number of bytes; chunked bodies are not taken. Most clients do this by themselves when the body is not
    streamed.
    """

    status, code, title = 411, "length_required", "Length required"


class PayloadTooLarge(Problem):
    """The body has more than 20 MiB.

    Send smaller attachments, or a link to the file in their place.
    """

    status, code, title = 413, "payload_too_large", "Payload too large"


class UnsupportedMediaType(Problem):
    """The body is not announced as JSON, or is compressed.

    Send it as it is, with `Content-Type: application/json`.
    """

    status, code, title = 415, "unsupported_media_type", "Unsupported media type"


class InvalidFields(Problem):
    """One field or more, of the body or of the query, breaks a rule.

    `errors` lists all of them at once, each with the path of its `field`, a `code` and a sentence. Unknown fields are
    refused too, with the nearest known name: an ignored `scheduledfor` would send at once.
    """

    status, code, title = 422, "validation_error", "Validation failed"


class RateLimitExceeded(Problem):
    """The workspace made more requests than it may in this moment, or too many without a valid key came from you.

    Wait for the seconds of `Retry-After`, then go on. `RateLimit-Remaining` tells beforehand how many requests are
    left; a batch carries up to 500 emails in one.
    """

    status, code, title = 429, "rate_limit_exceeded", "Rate limit exceeded"


class InternalError(Problem):
    """Something went wrong on the server's side.

    Nothing was accepted. Try again later; when it stays, tell the `requestId` to whoever runs this server. With an
    idempotency key, trying again can never send twice.
    """

    status, code, title = 500, "internal_error", "Internal error"


class ServiceUnavailable(Problem):
    """The server cannot reach its database.

    Try again after the seconds of `Retry-After`, with the same idempotency key: when the first attempt was accepted
    after all, the answer is the original one and nothing is sent twice.
    """

    status, code, title = 503, "service_unavailable", "Service unavailable"


class Overloaded(Problem):
    """The server gets more requests than it can answer in time, and this one has waited for too long.

    Nothing was accepted: it was not even read. Wait for the seconds of `Retry-After`, and ask less at once; a batch
    carries up to 500 emails in one request.
    """

    status, code, title = 503, "overloaded", "Overloaded"


def internal_error() -> InternalError:
    return InternalError("Something went wrong on our side. Nothing was accepted; name the requestId when you ask.")


def service_unavailable() -> ServiceUnavailable:
    return ServiceUnavailable(
        "The database cannot be reached. Nothing was accepted unless an idempotency key says otherwise; try again.",
        headers={"Retry-After": "5"},
    )


def overloaded() -> Overloaded:
    return Overloaded(
        "There are more requests than the server can answer in time. Nothing was accepted; try again.",
        headers={"Retry-After": "2"},
    )
