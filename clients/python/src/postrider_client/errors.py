"""Errors of this library. `PostriderError` is the base class, `ApiError` the base class of API errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional

from postrider_client.wire import parse_datetime


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


class StreamNotAllowed(Forbidden):
    """The API key is limited to other streams."""

    @property
    def allowed_streams(self) -> list[str]:
        return list(self.problem["allowedStreams"])


class StreamPaused(Forbidden):
    """The stream is paused, because its bounce or complaint rate is too high."""


class StreamExists(Conflict):
    """The workspace has a stream with this id, which may be archived."""


class AlertExists(Conflict):
    """The workspace has an alert with this metric, stream and threshold."""

    @property
    def alert_id(self) -> str:
        return str(self.problem["alertId"])


class TestKeyRequired(Forbidden):
    """Only a test key can simulate received emails."""

    __test__ = False  # not a test of pytest


class NotBlocked(Conflict):
    """The received email is not blocked."""


class NotForwarded(Conflict):
    """The received email is not forwarded: a forward could cause a loop or spread spam."""


class NotUnreadable(Conflict):
    """The message of the received email was read, or is new, so it is not read again."""


class RereadTooSoon(Conflict):
    """The message was read again within the last hour without success; `retry_after_seconds` is the wait."""


class NotPublished(Conflict):
    """The received email has not been published yet, so nothing can be delivered again."""


class ReceivingDomainTaken(Conflict):
    """Another workspace receives the email of the domain."""


class EmailAlreadySent(Conflict):
    """The email is being sent or was sent; it was not cancelled."""


class IdempotencyKeyReuse(Conflict):
    """The idempotency key was already used with another body."""


class ValidationError(Unprocessable):
    @property
    def errors(self) -> list[FieldError]:
        """All invalid fields of the request."""
        return [FieldError(error["field"], error["code"], error["detail"]) for error in self.problem["errors"]]


class RecipientSuppressed(Unprocessable):
    @property
    def recipients(self) -> list[SuppressedRecipient]:
        return [
            SuppressedRecipient(one["email"], one["field"], one["reason"], one["suppressionId"], one.get("stream"))
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


class StreamNotFound(Unprocessable):
    pass


class StreamArchived(Unprocessable):
    """The stream is archived and accepts no emails."""


class InvalidStream(Unprocessable):
    """The properties of the stream do not fit together."""


class ReceivingNotActive(Unprocessable):
    """No domain receives the answers to the email; `reply_tracking` needs one."""


class ReceivedEmailNotFound(Unprocessable):
    """The workspace has no received email with the id in `in_reply_to_id`."""


class RecipientRefused(Unprocessable):
    """The mail server refuses the recipient of a simulated email."""

    @property
    def reply(self) -> str:
        """The SMTP reply, such as "550 5.1.1 No such address"."""
        return str(self.problem["reply"])


class TemplateNotFound(Unprocessable):
    pass


class TemplateSyntaxError(Unprocessable):
    @property
    def place(self) -> tuple[str, int, int]:
        """The field, line and column of the error, counted from 1."""
        return self.problem["field"], self.problem["line"], self.problem["column"]


class MissingTemplateVariables(Unprocessable):
    @property
    def variables(self) -> list[str]:
        return list(self.problem["variables"])


class RateLimitExceeded(ApiError):
    """Too many requests. Raised after the last automatic retry."""


class QuotaExceeded(ApiError):
    """The monthly quota is exceeded. Retries fail until `resets_at`."""

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
        return parse_datetime(self.problem["resetsAt"])
