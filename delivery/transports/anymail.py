"""Hand each message to a provider's API, by any backend of django-anymail.

The one room of delivery that knows Django: the backends are Django's email backends.
"""

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from anymail.exceptions import AnymailError
from anymail.message import AnymailRecipientStatus
from django.core.mail import EmailMultiAlternatives, get_connection

from delivery.bounces.reasons import Reason
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply, parked, safe_text
from delivery.message.delivery_request import DeliveryRequest
from delivery.transports.credentials import CredentialsCircuit
from delivery.transports.destinations import Destination, DestinationBusy, Limits
from delivery.transports.interface import Lease, LeaseLost
from delivery.transports.provider_errors import outcome_of, outcome_unknown
from delivery.transports.provider_messages import Features, check_backend, provider_message

THREADS = 8
# The backend's own time-out (ANYMAIL["REQUESTS_TIMEOUT"], 30 s) is for each read; this one is for the call.
CALL_SECONDS = 120.0
# What the provider made of a recipient (anymail's vocabulary); everything else is an acceptance.
REFUSALS = {
    "invalid": (DeliveryStatus.BOUNCED, Reason.BAD_ADDRESS, True),
    # Mostly an earlier bounce or complaint on the provider's own list; which one, it does not say.
    "rejected": (DeliveryStatus.BOUNCED, Reason.PROVIDER_REFUSED, False),
    "failed": (DeliveryStatus.FAILED, Reason.PROVIDER_REFUSED, False),
}
UNKNOWN = AnymailRecipientStatus(message_id=None, status="unknown")


class AnymailTransport:
    """Delivers through a provider: its acceptance is `sent`, its tracking signals say the rest.

    backend: the dotted path of anymail's backend class; options: what it takes beside Django's settings.
    Raises BackendUnsuitable when the backend cannot carry what every message has.
    """

    def __init__(self, backend: str, *, threads: int = THREADS, options: Mapping[str, Any] | None = None) -> None:
        self._backend = backend
        self._options = dict(options or {})
        self._features: Features = check_backend(backend, options=self._options)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="provider")
        self._of_thread = threading.local()
        self._lane = Destination(Limits(connections=threads))
        self._logins = CredentialsCircuit()

    @property
    def trouble(self) -> str | None:
        """Return what the operator must repair: the provider refuses the key."""
        return "The provider refuses the credentials of ANYMAIL_*." if self._logins.is_blown else None

    async def deliver(self, consignment: DeliveryRequest, *, lease: Lease) -> DeliveryOutcome:
        """Hand one message over. Every failure is an outcome; only LeaseLost is raised."""
        if self._logins.is_open:
            return parked(Reason.LOGIN_REFUSED, "The provider refuses the credentials.")
        try:
            async with self._lane.place():
                with self._logins.passage():
                    outcome = await self._call(consignment, lease)
        except DestinationBusy as busy:
            return busy.outcome
        self._note(outcome)
        return outcome

    def close(self) -> None:
        self._threads.shutdown(wait=False)

    async def _call(self, consignment: DeliveryRequest, lease: Lease) -> DeliveryOutcome:
        loop = asyncio.get_running_loop()
        call = loop.run_in_executor(self._threads, self._send, consignment, lease)
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return await call
        except TimeoutError:
            return outcome_unknown("The provider did not answer in time.")

    def _send(self, consignment: DeliveryRequest, lease: Lease) -> DeliveryOutcome:
        """Make the call, in a thread of the pool."""
        message = provider_message(consignment, features=self._features)
        if not lease.is_held():
            raise LeaseLost
        try:
            self._connection().send_messages([message])
        except AnymailError as error:
            if refusal := _refused(message):
                return refusal
            return outcome_of(error)
        return _refused(message) or _accepted(message)

    def _connection(self) -> Any:
        """Return this thread's backend, opened once, so that its HTTPS connection is kept."""
        if not hasattr(self._of_thread, "connection"):
            self._of_thread.connection = get_connection(self._backend, **self._options)
            self._of_thread.connection.open()
        return self._of_thread.connection

    def _note(self, outcome: DeliveryOutcome) -> None:
        self._logins.note(outcome)
        (self._lane.failed if outcome.reason == Reason.NETWORK else self._lane.moved)()


def _accepted(message: EmailMultiAlternatives) -> DeliveryOutcome:
    provider_id = safe_text(str(_status(message).message_id or ""))
    return DeliveryOutcome(DeliveryStatus.SENT, Reply(0, "Accepted by the provider."), provider_id=provider_id)


def _refused(message: EmailMultiAlternatives) -> DeliveryOutcome | None:
    status = _status(message)
    if status.status not in REFUSALS:
        return None
    verdict, reason, is_fault = REFUSALS[status.status]
    reply = Reply(0, f"The provider answered that the recipient is {status.status}.")
    provider_id = safe_text(str(status.message_id or ""))
    return DeliveryOutcome(verdict, reply, reason, is_recipient_fault=is_fault, provider_id=provider_id)


def _status(message: EmailMultiAlternatives) -> AnymailRecipientStatus:
    """Return the status of the only recipient there is."""
    status = getattr(message, "anymail_status", None)
    recipients = status.recipients if status else {}
    return next(iter((recipients or {}).values()), UNKNOWN)
