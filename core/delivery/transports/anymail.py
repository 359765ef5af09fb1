"""Anymail transport: delivers through a provider's API with any django-anymail backend (docs/decisions/0024).

The backends are Django email backends; this module and provider_messages are the only Django users in delivery.
"""

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from anymail.exceptions import AnymailError
from anymail.message import AnymailRecipientStatus
from django.core.mail import EmailMultiAlternatives, get_connection

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply, parked, safe_text
from core.delivery.bounces.signals import SLOW
from core.delivery.message.compose import OutgoingMessage
from core.delivery.transports.circuit_breaker import BreakerPolicy
from core.delivery.transports.credentials import POLICY, CredentialsBreaker
from core.delivery.transports.destinations import Destination, DestinationBusy, DestinationLimits
from core.delivery.transports.interface import LeaseCheck, require_valid
from core.delivery.transports.provider_errors import outcome_for_error, outcome_unknown
from core.delivery.transports.provider_messages import Features, check_backend, provider_message

THREADS = 8
# The backend's own timeout (ANYMAIL["REQUESTS_TIMEOUT"], 30 s) applies to each read; this one to the whole call.
CALL_SECONDS = 120.0
# Recipient statuses (anymail's vocabulary) that are refusals; every other status is an acceptance.
REFUSALS = {
    "invalid": (DeliveryStatus.BOUNCED, FailureReason.BAD_ADDRESS, True),
    # Usually an earlier bounce or complaint on the provider's own list; the provider does not say which.
    "rejected": (DeliveryStatus.BOUNCED, FailureReason.PROVIDER_REFUSED, False),
    "failed": (DeliveryStatus.FAILED, FailureReason.PROVIDER_REFUSED, False),
}
UNKNOWN = AnymailRecipientStatus(message_id=None, status="unknown")


class AnymailTransport:
    """Delivers through a provider: acceptance means `sent`, tracking signals report the rest.

    backend: the dotted path of anymail's backend class.
    options: its arguments besides Django's settings.
    limits: the limits of its calls.
    login_policy: the policy for refused credentials, which pause it.
    Raises BackendUnsuitable when the backend cannot carry a part that every message has.
    """

    def __init__(
        self,
        backend: str,
        *,
        threads: int = THREADS,
        options: Mapping[str, Any] | None = None,
        limits: DestinationLimits | None = None,
        login_policy: BreakerPolicy = POLICY,
    ) -> None:
        self._backend = backend
        self._options = dict(options or {})
        self._features: Features = check_backend(backend, options=self._options)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="provider")
        self._thread_local = threading.local()
        self._destination = Destination(limits or DestinationLimits(max_connections=threads))
        self._credentials = CredentialsBreaker(login_policy)

    @property
    def trouble(self) -> str | None:
        """Return a message for the operator if the provider rejects the credentials."""
        return "The provider rejects the credentials in ANYMAIL_*." if self._credentials.is_tripped else None

    async def deliver(self, message: OutgoingMessage, *, lease: LeaseCheck) -> DeliveryOutcome:
        """Deliver one message. Every failure is an outcome; only LeaseLost is raised."""
        if self._credentials.is_open:
            text = "The provider rejects the credentials."
            return parked(FailureReason.LOGIN_REFUSED, text, waits_for="transport")
        try:
            async with self._destination.slot():
                with self._credentials.call():
                    outcome = await self._call(message, lease)
        except DestinationBusy as busy:
            return busy.outcome
        self._record(outcome)
        return outcome

    def close(self) -> None:
        self._threads.shutdown(wait=False)

    def end_sessions(self) -> None:
        """Keep the HTTPS connections: they belong to the threads, and hold nothing at the provider."""

    async def _call(self, message: OutgoingMessage, lease: LeaseCheck) -> DeliveryOutcome:
        loop = asyncio.get_running_loop()
        call = loop.run_in_executor(self._threads, self._send, message, lease)
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return await call
        except TimeoutError:
            return outcome_unknown("The provider did not answer in time.")

    def _send(self, message: OutgoingMessage, lease: LeaseCheck) -> DeliveryOutcome:
        """Make the call; runs in a thread of the pool."""
        email = provider_message(message, features=self._features)
        require_valid(lease)
        try:
            self._connection().send_messages([email])
        except AnymailError as error:
            if refusal := _refusal(email):
                return refusal
            return outcome_for_error(error)
        return _refusal(email) or _acceptance(email)

    def _connection(self) -> Any:
        """Return this thread's backend, opened once to keep its HTTPS connection."""
        if not hasattr(self._thread_local, "connection"):
            self._thread_local.connection = get_connection(self._backend, **self._options)
            self._thread_local.connection.open()
        return self._thread_local.connection

    def _record(self, outcome: DeliveryOutcome) -> None:
        self._credentials.record(outcome)
        if outcome.reason == FailureReason.NETWORK:
            self._destination.record_failure()
        elif outcome.reason == FailureReason.RATE_LIMITED:
            # HTTP 429.
            self._destination.record_signal(SLOW, outcome)
        elif outcome.status is DeliveryStatus.SENT:
            self._destination.record_acceptance()
        else:
            self._destination.record_refusal(outcome)


def _acceptance(message: EmailMultiAlternatives) -> DeliveryOutcome:
    provider_id = safe_text(str(_status(message).message_id or ""))
    return DeliveryOutcome(DeliveryStatus.SENT, Reply(0, "Accepted by the provider."), provider_id=provider_id)


def _refusal(message: EmailMultiAlternatives) -> DeliveryOutcome | None:
    recipient = _status(message)
    if recipient.status not in REFUSALS:
        return None
    status, reason, is_recipient_fault = REFUSALS[recipient.status]
    reply = Reply(0, f"The provider reported the recipient as {recipient.status}.")
    provider_id = safe_text(str(recipient.message_id or ""))
    return DeliveryOutcome(status, reply, reason, is_recipient_fault=is_recipient_fault, provider_id=provider_id)


def _status(message: EmailMultiAlternatives) -> AnymailRecipientStatus:
    """Return the status of the message's only recipient."""
    status = getattr(message, "anymail_status", None)
    recipients = status.recipients if status else {}
    return next(iter((recipients or {}).values()), UNKNOWN)
