"""Circuit breaker for a relay or provider that refuses the configured credentials."""

from core.delivery.bounces.classification import DEMAND_CODE
from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus
from core.delivery.transports.circuit_breaker import BreakerPolicy, CircuitBreaker

# Wrong passwords lock accounts: after three refusals, retry once a minute and then less often.
POLICY = BreakerPolicy(failure_threshold=3, initial_open_seconds=60.0, max_open_seconds=900.0)


def is_demand(outcome: DeliveryOutcome) -> bool:
    """Return whether the host demands a login or TLS for the session, and not only for one recipient."""
    reasons = (FailureReason.LOGIN_REFUSED, FailureReason.TLS)
    return outcome.reply.code == DEMAND_CODE and outcome.reason in reasons


class CredentialsBreaker(CircuitBreaker):
    """Opens after refused logins; closes on any outcome that proves a login was accepted."""

    def __init__(self, policy: BreakerPolicy = POLICY) -> None:
        super().__init__(policy)

    def record(self, outcome: DeliveryOutcome) -> None:
        """Count the outcome of an attempt; a deferral for another reason proves nothing."""
        if outcome.reason == FailureReason.LOGIN_REFUSED or is_demand(outcome):
            self.record_failure()
        elif outcome.status is not DeliveryStatus.DEFERRED:
            self.record_success()
