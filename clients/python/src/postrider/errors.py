"""What can go wrong, by name. Catch `PostriderError` for everything, `ApiError` for every refusal of the server."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional

from postrider.wire import moment


class PostriderError(Exception):
    """Anything that this library raises on its own."""


class ConnectionFailed(PostriderError):
    """The server could not be reached, or went away before it had answered."""


class TimedOut(ConnectionFailed):
    """Nothing came from the server within `timeout_seconds`."""


class WebhookVerificationError(PostriderError):
    """A webhook's signature, or its time, is not what it has to be: answer 400 and do nothing."""


class UnsupportedMessage(PostriderError):
    """A Django message has something that the API cannot carry."""


@dataclass(frozen=True)
class FieldError:
    field: str
    code: str
    detail: str


@dataclass(frozen=True)
class SuppressedRecipient:
    email: str
    field: str
    reason: str
    suppression_id: str


class ApiError(PostriderError):
    """The server answered, and refused.

    `code` is for programs and never changes, `str(error)` is for people. `problem` is the whole answer (RFC 9457).
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
        """What the server asked to wait, or None."""
        asked = self.headers.get("Retry-After", "")
        return int(asked) if asked.isascii() and asked.isdigit() else None


class BadRequest(ApiError):
    pass


class AuthenticationError(ApiError):
    pass


class Forbidden(ApiError):
    pass


class NotFound(ApiError):
    pass


class Conflict(ApiError):
    pass


class PayloadTooLarge(ApiError):
    pass


class Unprocessable(ApiError):
    pass


class ServerError(ApiError):
    pass


class InsufficientScope(Forbidden):
    @property
    def required_scope(self) -> str:
        return str(self.problem["requiredScope"])


class PlanLimitReached(Forbidden):
    @property
    def resource(self) -> str:
        return str(self.problem["resource"])

    @property
    def limit(self) -> int:
        return int(self.problem["limit"])


class EmailAlreadySent(Conflict):
    """The email is on its way or further; nothing was cancelled."""


class IdempotencyKeyReuse(Conflict):
    """The same idempotency key came with another body."""


class ValidationError(Unprocessable):
    @property
    def errors(self) -> list[FieldError]:
        """All faults of the request at once."""
        return [FieldError(error["field"], error["code"], error["detail"]) for error in self.problem["errors"]]


class RecipientSuppressed(Unprocessable):
    @property
    def recipients(self) -> list[SuppressedRecipient]:
        return [
            SuppressedRecipient(one["email"], one["field"], one["reason"], one["suppressionId"])
            for one in self.problem["recipients"]
        ]


class DomainNotRegistered(Unprocessable):
    @property
    def domain(self) -> str:
        return str(self.problem["domain"])


class DomainNotVerified(DomainNotRegistered):
    @property
    def missing_records(self) -> Any:
        return self.problem.get("missingRecords")


class TemplateNotFound(Unprocessable):
    pass


class TemplateSyntaxError(Unprocessable):
    @property
    def place(self) -> tuple[str, int, int]:
        """The field, and line and column in it, from 1."""
        return self.problem["field"], self.problem["line"], self.problem["column"]


class MissingTemplateVariables(Unprocessable):
    @property
    def variables(self) -> list[str]:
        return list(self.problem["variables"])


class RateLimitExceeded(ApiError):
    """Too many requests in this moment. It is repeated by itself; this came after the last attempt."""


class QuotaExceeded(ApiError):
    """The month's emails are used up. Repeating changes nothing before `resets_at`."""

    @property
    def limit(self) -> int:
        return int(self.problem["limit"])

    @property
    def used(self) -> int:
        return int(self.problem["used"])

    @property
    def requested(self) -> int:
        return int(self.problem["requested"])

    @property
    def resets_at(self) -> datetime:
        return moment(self.problem["resetsAt"])
