"""Client of Postrider, the self-hosted transactional email service."""

from typing import TYPE_CHECKING, Any

from postrider_client import errors
from postrider_client.attachments import Attachment
from postrider_client.batches import BatchRecipient
from postrider_client.client import Postrider
from postrider_client.errors import *  # noqa: F403 - generated, with __all__
from postrider_client.signatures import new_webhook_secret, sign_webhook, verify_webhook
from postrider_client.version import __version__

if TYPE_CHECKING:
    from postrider_client.aio.client import AsyncPostrider as AsyncPostrider

__all__ = [
    "Attachment",
    "BatchRecipient",
    "Postrider",
    "__version__",
    "new_webhook_secret",
    "sign_webhook",
    "verify_webhook",
]
__all__ += errors.__all__


def __getattr__(name: str) -> Any:
    if name == "AsyncPostrider":
        from postrider_client.aio.client import AsyncPostrider  # noqa: PLC0415 - requires httpx, an optional package

        return AsyncPostrider
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
