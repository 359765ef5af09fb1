"""Callers that use the API during a chaos run."""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.audit.ledger import AcceptedEmail
from tests.stack.scenario import Scenario, Tenant, message_id_of

SIMULATED_RECIPIENTS = ("delivered", "bounced", "failed", "deferred", "complained", "opened", "clicked", "unsubscribed")


@dataclass
class Caller:
    """One thread of requests with a separate random generator.

    bulk: maximum number of recipients of large batches; 0 for none, in a short run.
    expiries: the shortest and the longest time in which emails expire; None if they do not.
    """

    scenario: Scenario
    random: random.Random
    bulk: int = 0
    expiries: tuple[float, float] | None = None
    done: Counter[str] = field(default_factory=Counter)
    sent: list[AcceptedEmail] = field(default_factory=list)
    scheduled: list[AcceptedEmail] = field(default_factory=list)
    error: str = ""

    def run(self, until: float) -> None:
        try:
            while time.monotonic() < until:
                action = self.random.choices(*zip(*self.actions(), strict=True))[0]
                action()
                self.done[action.__name__] += 1
                time.sleep(self.random.random() * 0.1)
        except Exception as error:  # noqa: BLE001 - reported as a violation
            self.error = f"a caller failed: {error!r}"

    def actions(self) -> list[tuple[Callable[[], None], int]]:
        return [
            (self.send, 10), (self.send_to_two, 3), (self.batch, 3), (self.simulate, 4), (self.schedule, 4),
            (self.cancel, 3), (self.suppress, 2), (self.resend, 2), (self.report, 1), (self.large_batch, 4),
        ]  # fmt: skip

    @property
    def tenant(self) -> Tenant:
        return self.random.choice(self.scenario.tenants)

    def expiry(self) -> float | None:
        return self.random.uniform(*self.expiries) if self.expiries else None

    def send(self) -> None:
        self._add(self.scenario.send(self.tenant, self.scenario.address(), expires_in=self.expiry()))

    def send_to_two(self) -> None:
        addresses = self.scenario.address(), self.scenario.address()
        self._add(self.scenario.send(self.tenant, *addresses, expires_in=self.expiry()))

    def batch(self) -> None:
        count = self.random.randint(2, 8)
        self.sent += self.scenario.batch(self.tenant, *(self.scenario.address() for _ in range(count)))

    def large_batch(self) -> None:
        if self.bulk:
            tenant, count = self.tenant, self.random.randint(self.bulk // 2, self.bulk)
            addresses = [self.scenario.address() for _ in range(count)]
            self.sent += self.scenario.batch(tenant, *addresses, template=tenant.long_template)

    def simulate(self) -> None:
        self.scenario.send(
            self.tenant, self.scenario.address("simulator.test", self.random.choice(SIMULATED_RECIPIENTS))
        )

    def schedule(self) -> None:
        seconds, expiry = self.random.uniform(1, 8), self.expiry()
        expires_in = expiry and seconds + expiry
        sent = self.scenario.send(self.tenant, self.scenario.address(), seconds=seconds, expires_in=expires_in)
        if sent:
            self.scheduled.append(sent)

    def cancel(self) -> None:
        if self.scheduled:
            self.scenario.cancel(self.scheduled.pop(self.random.randrange(len(self.scheduled))))

    def suppress(self) -> None:
        """Suppress an address whose email is being sent or was sent."""
        if self.sent:
            sent = self.random.choice(self.sent[-10:])
            tenant = next(tenant for tenant in self.scenario.tenants if tenant.id == sent.workspace)
            self.scenario.suppress(tenant, self.random.choice(sent.addresses))

    def resend(self) -> None:
        if self.sent:
            self._add(self.scenario.resend(self.random.choice(self.sent)))

    def report(self) -> None:
        # Bounces of system email go to the mailbox of its sender.
        sender = self.random.choice(self.scenario.ledger.messages) if self.scenario.ledger.messages else None
        if sender and not message_id_of(sender).startswith("sysm_"):
            self.scenario.report_bounce(sender)

    def _add(self, sent: AcceptedEmail | None) -> None:
        if sent:
            self.sent.append(sent)
