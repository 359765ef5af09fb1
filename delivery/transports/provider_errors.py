"""What a provider's refusal, or its silence, means for the message."""

from typing import Any

from anymail.exceptions import AnymailError, AnymailRecipientsRefused, AnymailRequestsAPIError
from requests.exceptions import ConnectTimeout, ProxyError, RequestException, SSLError
from urllib3.exceptions import NewConnectionError

from delivery.bounces.reasons import Reason
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply, deferred, safe_text

# By HTTP status; other 4xx mean that the provider does not take this message, and will not later.
ANSWERS: dict[int, tuple[DeliveryStatus, Reason]] = {
    401: (DeliveryStatus.DEFERRED, Reason.LOGIN_REFUSED),
    402: (DeliveryStatus.DEFERRED, Reason.PROVIDER_REFUSED),
    403: (DeliveryStatus.DEFERRED, Reason.LOGIN_REFUSED),
    407: (DeliveryStatus.DEFERRED, Reason.NETWORK),
    408: (DeliveryStatus.DEFERRED, Reason.HOST_TROUBLE),
    413: (DeliveryStatus.FAILED, Reason.TOO_LARGE),
    425: (DeliveryStatus.DEFERRED, Reason.HOST_TROUBLE),
    429: (DeliveryStatus.DEFERRED, Reason.RATE_LIMITED),
    500: (DeliveryStatus.DEFERRED, Reason.HOST_TROUBLE),
    501: (DeliveryStatus.FAILED, Reason.PROVIDER_REFUSED),
    503: (DeliveryStatus.DEFERRED, Reason.HOST_TROUBLE),
}
REFUSED = (DeliveryStatus.FAILED, Reason.PROVIDER_REFUSED)


def outcome_unknown(text: str) -> DeliveryOutcome:
    """Return the outcome of a call whose answer was lost: the provider may have the message."""
    return DeliveryOutcome(
        DeliveryStatus.DEFERRED, Reply(0, safe_text(text)), Reason.OUTCOME_UNKNOWN, may_be_delivered=True
    )


def outcome_of(error: AnymailError) -> DeliveryOutcome:
    """Return the outcome of a call that anymail reports as failed."""
    if isinstance(error, RequestException) and error.response is None and isinstance(error.__cause__, RequestException):
        return _without_answer(error.__cause__)
    if isinstance(error, AnymailRecipientsRefused):
        return DeliveryOutcome(DeliveryStatus.BOUNCED, _reply(error), Reason.PROVIDER_REFUSED)
    if error.status_code is not None:
        return _answered(error)
    if isinstance(error, AnymailRequestsAPIError):
        return outcome_unknown(f"The provider's answer was lost: {error.args}")
    # A feature or an address that the backend cannot put into words: nothing was called.
    return DeliveryOutcome(DeliveryStatus.FAILED, _reply(error), Reason.PROVIDER_REFUSED)


def _answered(error: AnymailError) -> DeliveryOutcome:
    status: int = error.status_code
    # 2xx with an answer that cannot be read; a gateway that gave up on the provider behind it.
    if status < 300 or status in (502, 504):
        return outcome_unknown(f"The provider's answer was lost (HTTP {status}).")
    verdict, reason = ANSWERS.get(status, REFUSED if status < 500 else ANSWERS[503])
    return DeliveryOutcome(verdict, _reply(error), reason)


def _without_answer(cause: Any) -> DeliveryOutcome:
    """Tell a connection that never stood from one that broke with the message in it."""
    reason = getattr(cause.args[0], "reason", None) if cause.args else None
    never_stood = isinstance(cause, ConnectTimeout | SSLError | ProxyError) or isinstance(reason, NewConnectionError)
    if never_stood:
        return deferred(Reason.NETWORK, f"No connection to the provider: {type(cause).__name__}")
    return outcome_unknown(f"The provider's answer was lost: {type(cause).__name__}")


def _reply(error: AnymailError) -> Reply:
    # Not str(error): that holds the request, and with it the message.
    answer = error.response.text if error.response is not None else " ".join(map(str, error.args))
    status = f"HTTP {error.status_code}: " if error.status_code else ""
    return Reply(0, safe_text(f"The provider refused it. {status}{answer}"))
