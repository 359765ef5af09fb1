"""Those who use the service while everything goes wrong."""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.audit.ledger import Sent
from tests.stack.scenario import Scene, Tenant

LIVES = ("delivered", "bounced", "failed", "deferred", "complained", "opened", "clicked", "unsubscribed")


@dataclass
class Caller:
    """One thread of requests, by a random source of its own.

    bulk: recipients of its large batches at most; 0 for none, where a run shall be short.
    """

    scene: Scene
    random: random.Random
    bulk: int = 0
    done: Counter[str] = field(default_factory=Counter)
    sent: list[Sent] = field(default_factory=list)
    scheduled: list[Sent] = field(default_factory=list)
    error: str = ""

    def run(self, until: float) -> None:
        try:
            while time.monotonic() < until:
                act = self.random.choices(*zip(*self.acts(), strict=True))[0]
                act()
                self.done[act.__name__] += 1
                time.sleep(self.random.random() * 0.1)
        except Exception as error:  # noqa: BLE001 - told in the findings
            self.error = f"a caller was let down: {error!r}"

    def acts(self) -> list[tuple[Callable[[], None], int]]:
        return [
            (self.send, 10), (self.send_to_two, 3), (self.batch, 3), (self.simulate, 4), (self.schedule, 4),
            (self.cancel, 3), (self.suppress, 2), (self.resend, 2), (self.report, 1), (self.large_batch, 4),
        ]  # fmt: skip

    @property
    def tenant(self) -> Tenant:
        return self.random.choice(self.scene.tenants)

    def send(self) -> None:
        self._keep(self.scene.send(self.tenant, self.scene.address()))

    def send_to_two(self) -> None:
        self._keep(self.scene.send(self.tenant, self.scene.address(), self.scene.address()))

    def batch(self) -> None:
        count = self.random.randint(2, 8)
        self.sent += self.scene.batch(self.tenant, *(self.scene.address() for _ in range(count)))

    def large_batch(self) -> None:
        if self.bulk:
            tenant, count = self.tenant, self.random.randint(self.bulk // 2, self.bulk)
            addresses = [self.scene.address() for _ in range(count)]
            self.sent += self.scene.batch(tenant, *addresses, template=tenant.long_template)

    def simulate(self) -> None:
        self.scene.send(self.tenant, self.scene.address("simulator.test", self.random.choice(LIVES)))

    def schedule(self) -> None:
        sent = self.scene.send(self.tenant, self.scene.address(), seconds=self.random.uniform(1, 8))
        if sent:
            self.scheduled.append(sent)

    def cancel(self) -> None:
        if self.scheduled:
            self.scene.cancel(self.scheduled.pop(self.random.randrange(len(self.scheduled))))

    def suppress(self) -> None:
        """Block an address whose mail is under way, or was."""
        if self.sent:
            sent = self.random.choice(self.sent[-10:])
            tenant = next(tenant for tenant in self.scene.tenants if tenant.id == sent.workspace)
            self.scene.suppress(tenant, self.random.choice(sent.addresses))

    def resend(self) -> None:
        if self.sent:
            self._keep(self.scene.resend(self.random.choice(self.sent)))

    def report(self) -> None:
        if self.scene.ledger.copies:
            self.scene.report_bounce(self.random.choice(self.scene.ledger.copies))

    def _keep(self, sent: Sent | None) -> None:
        if sent:
            self.sent.append(sent)
