"""Client of Postrider, the self-hosted transactional email service."""

from typing import TYPE_CHECKING, Any

from postrider_client.attachments import Attachment
from postrider_client.client import Postrider
from postrider_client.emails import BatchRecipient
from postrider_client.errors import (
    AlertExists,
    ApiError,
    AuthenticationError,
    BadRequest,
    Conflict,
    ConnectionFailed,
    DomainNotRegistered,
    DomainNotVerified,
    EmailAlreadySent,
    Forbidden,
    IdempotencyKeyReuse,
    InsufficientScope,
    InvalidStream,
    MissingTemplateVariables,
    NotBlocked,
    NotForwarded,
    NotFound,
    NotPublished,
    NotUnreadable,
    PayloadTooLarge,
    PlanLimitReached,
    PostriderError,
    QuotaExceeded,
    RateLimitExceeded,
    ReceivedEmailNotFound,
    ReceivingDomainTaken,
    ReceivingNotActive,
    RecipientRefused,
    RecipientSuppressed,
    RereadTooSoon,
    ServerError,
    StreamArchived,
    StreamExists,
    StreamNotAllowed,
    StreamNotFound,
    StreamPaused,
    TemplateNotFound,
    TemplateSyntaxError,
    TestKeyRequired,
    TimedOut,
    Unprocessable,
    UnsupportedMessage,
    ValidationError,
    WebhookVerificationError,
)
from postrider_client.signatures import new_webhook_secret, sign_webhook, verify_webhook
from postrider_client.version import __version__

if TYPE_CHECKING:
    from postrider_client.aio.client import AsyncPostrider as AsyncPostrider

__all__ = [
    "AlertExists",
    "ApiError",
    "Attachment",
    "AuthenticationError",
    "BadRequest",
    "BatchRecipient",
    "Conflict",
    "ConnectionFailed",
    "DomainNotRegistered",
    "DomainNotVerified",
    "EmailAlreadySent",
    "Forbidden",
    "IdempotencyKeyReuse",
    "InsufficientScope",
    "InvalidStream",
    "MissingTemplateVariables",
    "NotBlocked",
    "NotForwarded",
    "NotFound",
    "NotPublished",
    "NotUnreadable",
    "PayloadTooLarge",
    "PlanLimitReached",
    "Postrider",
    "PostriderError",
    "QuotaExceeded",
    "RateLimitExceeded",
    "ReceivedEmailNotFound",
    "ReceivingDomainTaken",
    "ReceivingNotActive",
    "RecipientRefused",
    "RecipientSuppressed",
    "RereadTooSoon",
    "ServerError",
    "StreamArchived",
    "StreamExists",
    "StreamNotAllowed",
    "StreamNotFound",
    "StreamPaused",
    "TemplateNotFound",
    "TemplateSyntaxError",
    "TestKeyRequired",
    "TimedOut",
    "Unprocessable",
    "UnsupportedMessage",
    "ValidationError",
    "WebhookVerificationError",
    "__version__",
    "new_webhook_secret",
    "sign_webhook",
    "verify_webhook",
]


def __getattr__(name: str) -> Any:
    if name == "AsyncPostrider":
        from postrider_client.aio.client import AsyncPostrider  # noqa: PLC0415 - requires httpx, an optional package

        return AsyncPostrider
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
