"""Diverting transport: captured messages go to the built-in inbox instead of another host (docs/decisions/0387)."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply, deferred
from core.delivery.message.compose import OutgoingMessage
from core.delivery.recipients import Diversion, RecipientSetting
from core.delivery.transports.composing import compose_message
from core.delivery.transports.interface import SendPermit, Transport, require_valid

# Stores a message with its return path and its recipient; returns False if it could not.
Capture = Callable[[bytes, str, str], Awaitable[bool]]

CAPTURED = DeliveryOutcome(
    DeliveryStatus.DELIVERED, Reply(250, "2.6.0 Captured by the built-in inbox"), diversion=Diversion.CAPTURED
)


class DivertingTransport:
    """Captures messages, or passes them to the wrapped transport.

    Every message of the installation comes here. If the setting diverts, only those that were built for the address of
    the setting pass: a message that does not say so, such as a system email, is captured. With the rules of a file,
    those to addresses that it allows pass as well. Those that the rules of a workspace or a key capture never do
    (docs/decisions/0388).
    """

    def __init__(self, transport: Transport, *, recipients: RecipientSetting[Any], capture: Capture) -> None:
        self.transport = transport
        self._recipients = recipients
        self._capture = capture

    @property
    def trouble(self) -> str | None:
        is_unused = self._recipients.diversion is Diversion.CAPTURED
        return None if is_unused else self.transport.trouble

    def end_sessions(self) -> None:
        self.transport.end_sessions()

    async def deliver(self, message: OutgoingMessage, *, lease: SendPermit) -> DeliveryOutcome:
        """Deliver one message. Every failure is an outcome; only LeaseLost is raised."""
        if self._is_captured(message):
            return await self._store(message, lease)
        outcome = await self.transport.deliver(message, lease=lease)
        if message.diversion is None:
            return outcome
        # A refusal says nothing about the recipient.
        return replace(outcome, diversion=message.diversion, never_suppresses=True)

    def _is_captured(self, message: OutgoingMessage) -> bool:
        if message.diversion is Diversion.CAPTURED:
            return True
        is_redirected = message.diversion is Diversion.REDIRECTED
        return not self._recipients.lets_pass(message.recipient, is_redirected=is_redirected)

    async def _store(self, message: OutgoingMessage, lease: SendPermit) -> DeliveryOutcome:
        source = await compose_message(message)
        require_valid(lease)
        if await self._capture(source, message.return_path, message.recipient):
            return CAPTURED
        outcome = deferred(FailureReason.HOST_TROUBLE, "The built-in inbox could not store the message.")
        return replace(outcome, diversion=Diversion.CAPTURED)
