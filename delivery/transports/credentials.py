"""Whether a relay or a provider takes our credentials: wrong ones ask less and less often, and are told."""

from delivery.bounces.reasons import Reason
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus
from delivery.transports.circuit_breaker import Circuit, Fuse

# Wrong passwords lock accounts: after three refusals one message a minute, then fewer, asks again.
FUSE = Fuse(failures=3, first_seconds=60.0, longest_seconds=900.0)


class CredentialsCircuit(Circuit):
    """A fuse that a refused login blows, and whatever shows that a login was taken mends."""

    def __init__(self) -> None:
        super().__init__(FUSE)

    def note(self, outcome: DeliveryOutcome) -> None:
        if outcome.reason == Reason.LOGIN_REFUSED:
            self.fail()
        elif outcome.verdict is not DeliveryStatus.DEFERRED:
            self.succeed()
