"""Provider errors: the outcome of a provider call that was refused or not answered."""

import traceback
from dataclasses import replace
from typing import Any

from anymail.exceptions import AnymailError, AnymailRecipientsRefused, AnymailRequestsAPIError
from requests.exceptions import ConnectTimeout, ProxyError, RequestException, SSLError
from urllib3.exceptions import NewConnectionError

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply, deferred, safe_text

# Outcomes by HTTP status. Any other 4xx is a permanent refusal of this message.
STATUS_OUTCOMES: dict[int, tuple[DeliveryStatus, FailureReason]] = {
    401: (DeliveryStatus.DEFERRED, FailureReason.LOGIN_REFUSED),
    402: (DeliveryStatus.DEFERRED, FailureReason.PROVIDER_REFUSED),
    403: (DeliveryStatus.DEFERRED, FailureReason.LOGIN_REFUSED),
    407: (DeliveryStatus.DEFERRED, FailureReason.NETWORK),
    408: (DeliveryStatus.DEFERRED, FailureReason.HOST_TROUBLE),
    413: (DeliveryStatus.FAILED, FailureReason.TOO_LARGE),
    425: (DeliveryStatus.DEFERRED, FailureReason.HOST_TROUBLE),
    429: (DeliveryStatus.DEFERRED, FailureReason.RATE_LIMITED),
    500: (DeliveryStatus.DEFERRED, FailureReason.HOST_TROUBLE),
    501: (DeliveryStatus.FAILED, FailureReason.PROVIDER_REFUSED),
    503: (DeliveryStatus.DEFERRED, FailureReason.HOST_TROUBLE),
}
REFUSED = (DeliveryStatus.FAILED, FailureReason.PROVIDER_REFUSED)


def outcome_unknown(text: str) -> DeliveryOutcome:
    """Return the outcome of a call whose response was lost: the provider may have the message."""
    return DeliveryOutcome(
        DeliveryStatus.DEFERRED, Reply(0, safe_text(text)), FailureReason.OUTCOME_UNKNOWN, may_be_delivered=True
    )


def outcome_for_error(error: AnymailError) -> DeliveryOutcome:
    """Return the outcome of a failed provider call."""
    if isinstance(error, RequestException) and error.response is None and isinstance(error.__cause__, RequestException):
        return _outcome_without_response(error.__cause__)
    if isinstance(error, AnymailRecipientsRefused):
        return DeliveryOutcome(DeliveryStatus.BOUNCED, _reply(error), FailureReason.PROVIDER_REFUSED)
    if error.status_code is not None:
        return _outcome_for_status(error)
    if isinstance(error, AnymailRequestsAPIError):
        return outcome_unknown(f"The provider's response was lost: {error.args}")
    # The backend could not express a feature or an address: no call was made.
    return DeliveryOutcome(DeliveryStatus.FAILED, _reply(error), FailureReason.PROVIDER_REFUSED)


def _outcome_for_status(error: AnymailError) -> DeliveryOutcome:
    http_status: int = error.status_code
    # A 2xx with an unreadable body, or a gateway that timed out on the provider behind it.
    if http_status < 300 or http_status in (502, 504):
        return outcome_unknown(f"The provider's response was lost (HTTP {http_status}).")
    status, reason = STATUS_OUTCOMES.get(http_status, REFUSED if http_status < 500 else STATUS_OUTCOMES[503])
    # Without a body it is hardly the provider's own answer: a proxy may have passed the message on.
    is_empty = http_status >= 500 and error.response is not None and not error.response.content
    return DeliveryOutcome(status, _reply(error), reason, may_be_delivered=is_empty)


def _outcome_without_response(cause: Any) -> DeliveryOutcome:
    """Return a deferral if no connection was made; the outcome is unknown if a connection broke."""
    reason = getattr(cause.args[0], "reason", None) if cause.args else None
    is_unconnected = isinstance(cause, ConnectTimeout | SSLError | ProxyError) or isinstance(reason, NewConnectionError)
    if is_unconnected:
        outcome = deferred(FailureReason.NETWORK, f"Could not connect to the provider: {type(cause).__name__}")
        return replace(outcome, may_be_delivered=isinstance(cause, SSLError) and not _is_of_handshake(cause))
    return outcome_unknown(f"The provider's response was lost: {type(cause).__name__}")


def _is_of_handshake(error: BaseException) -> bool:
    """Return whether a TLS error is one of the handshake; a later one may have come after the request."""
    chain: BaseException | None = error
    while chain:
        if any(frame.f_code.co_name == "do_handshake" for frame, _ in traceback.walk_tb(chain.__traceback__)):
            return True
        chain = chain.__cause__ or chain.__context__
    return False


def _reply(error: AnymailError) -> Reply:
    # Not str(error): it contains the request, and so the message.
    answer = error.response.text if error.response is not None else " ".join(map(str, error.args))
    status = f"HTTP {error.status_code}: " if error.status_code else ""
    return Reply(0, safe_text(f"The provider refused the message. {status}{answer}"))
