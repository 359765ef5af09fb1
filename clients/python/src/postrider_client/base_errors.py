"""The errors that do not follow from a code of the API, and the base classes of those that do (`errors`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional


class PostriderError(Exception):
    """The base class of all errors of this library."""


class ConnectionFailed(PostriderError):
    """Raised when the server cannot be reached or closes the connection before it responds."""


class TimedOut(ConnectionFailed):
    """Raised when the server sends no data for `timeout_seconds`."""


class WebhookVerificationError(PostriderError):
    """Raised for a webhook with an invalid signature or timestamp. Respond with 400 and ignore it."""


class UnsupportedMessage(PostriderError):
    """Raised for a Django message that the API does not support."""


@dataclass(frozen=True)
class FieldError:
    field: str
    code: str
    detail: str


@dataclass(frozen=True)
class RefusedRecipient:
    """A recipient that the recipient rules do not allow."""

    email: str
    field: str


@dataclass(frozen=True)
class SuppressedRecipient:
    """`stream`: the only stream that is blocked; None if all are."""

    email: str
    field: str
    reason: str
    suppression_id: str
    stream: Optional[str] = None


class ApiError(PostriderError):
    """Raised for an error response of the API.

    `code` is stable and meant for programs, `str(error)` is meant for people. `problem` is the complete response
    (RFC 9457).
    """

    def __init__(self, problem: Mapping[str, Any], *, headers: Mapping[str, str]) -> None:
        super().__init__(problem["detail"])
        self.problem = problem
        self.headers = headers
        self.status: int = problem["status"]
        self.code: str = problem["code"]
        self.request_id: Optional[str] = problem["requestId"]

    @property
    def retry_after_seconds(self) -> Optional[int]:
        """The Retry-After header in seconds, or None."""
        value = self.headers.get("Retry-After", "")
        return int(value) if value.isascii() and value.isdigit() else None


class BadRequest(ApiError):
    """400: the request cannot be read."""


class AuthenticationError(ApiError):
    """401: the API key is missing or invalid."""


class Forbidden(ApiError):
    """403: the API key may not do this."""


class NotFound(ApiError):
    """404: the workspace has no such object."""


class Conflict(ApiError):
    """409: the state of the object does not allow it."""


class PayloadTooLarge(ApiError):
    """413: the body is too large."""


class Unprocessable(ApiError):
    """422: the request is understood and refused."""


class ServerError(ApiError):
    """5xx: the server failed."""


class TemplateError(Unprocessable):
    @property
    def place(self) -> tuple[str, int, int]:
        """The field, line and column of the error, counted from 1."""
        return self.problem["field"], self.problem["line"], self.problem["column"]
