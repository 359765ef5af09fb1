"""Large bodies: the bytes of bodies with files that a process has in flight (docs/decisions/0241)."""

from collections.abc import Collection

from core.lib.forking import LARGE_BYTES, return_free_memory
from webhooks.sending.queue import WebhookClaim

MEMORY_BYTES = 64 * 1024 * 1024
# The share of one endpoint, so that a slow one leaves room for others.
ENDPOINT_BYTES = MEMORY_BYTES // 4


class LargeBodies:
    """The sizes of the bodies in flight. A body that is larger than a share of the memory goes alone."""

    def __init__(self) -> None:
        self._sizes: dict[WebhookClaim, int] = {}

    def has_room(self, claim: WebhookClaim, size_bytes: int) -> bool:
        """Return whether a body of this size may be rendered now."""
        of_endpoint = [size for other, size in self._sizes.items() if other.webhook == claim.webhook]
        if of_endpoint and sum(of_endpoint) + size_bytes > ENDPOINT_BYTES:
            return False
        return not self._sizes or sum(self._sizes.values()) + size_bytes <= MEMORY_BYTES

    def take(self, claim: WebhookClaim, size_bytes: int) -> None:
        self._sizes[claim] = size_bytes

    def release(self, claims: Collection[WebhookClaim]) -> None:
        ended = sum(self._sizes.pop(claim, 0) for claim in claims)
        if ended > LARGE_BYTES and not self._sizes:
            return_free_memory()
