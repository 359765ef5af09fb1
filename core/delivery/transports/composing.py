"""Composition of messages in the network loop, or in a thread if it takes long."""

from core.delivery.message.compose import OutgoingMessage
from core.delivery.transports.smtp.commands import dot_stuffed
from core.lib.worker.event_loop import compute_in_thread

# Dot-stuffing so much takes about 5 ms.
LARGE_BODY_BYTES = 2 * 1024 * 1024


async def compose_message(message: OutgoingMessage) -> bytes:
    """Return the bytes of a message, signed if it has a key. Raises UnsafeHeader."""
    return await compute_in_thread(message.to_bytes) if message.is_large else message.to_bytes()


async def stuff_dots(composed: bytes) -> bytes:
    """Return the bytes that are sent after DATA; see dot_stuffed."""
    return await compute_in_thread(dot_stuffed, composed) if len(composed) > LARGE_BODY_BYTES else dot_stuffed(composed)
