"""The server of the primary loses its power under load; its synchronous standby takes over.

Loss, refusal and copies are judged by the auditor; the figures are for docs/scaling.md.
"""

import itertools
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest

from tests.stack.patroni import Cluster, DatabaseServer, running_cluster
from tests.stack.pgbouncer import PgBouncer, role_settings, running_balancer, running_pgbouncer
from tests.stack.scenario import Scenario, Tenant, running_scenario

pytestmark = [pytest.mark.stack, pytest.mark.alone]

# Programs that send over HTTP, and over SMTP.
CLIENTS = 6, 2
# Emails before the loss, and after the first one that the new primary accepts.
BEFORE, AFTER = 150, 150
# Losses directly, and as many through PgBouncer; ten for the figures.
ROUNDS = 5
# Connections of PgBouncer.
POOL_SIZE = 20
# The time to live of the lock of the primary (deploy/patroni), its promotion, and a busy machine.
MOST_REFUSAL_SECONDS = 45


@dataclass
class Load:
    """Programs that send without a pause until they are stopped. answered: the times of acknowledgements, by kind."""

    scenario: Scenario
    answered: dict[str, list[float]] = field(default_factory=lambda: {"HTTP": [], "SMTP": []})
    errors: list[BaseException] = field(default_factory=list)
    is_stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def count(self) -> int:
        return sum(map(len, self.answered.values()))

    def __enter__(self) -> Self:
        acts: dict[str, Callable[[Tenant, str], object]] = {"HTTP": self.scenario.send, "SMTP": self.scenario.submit}
        self.threads = [
            threading.Thread(target=self._run, args=[kind, acts[kind], tenant])
            for kind, count in zip(acts, CLIENTS, strict=True)
            for tenant in itertools.islice(itertools.cycle(self.scenario.tenants), count)
        ]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_stopping.set()
        for thread in self.threads:
            thread.join()

    def _run(self, kind: str, act: Callable[[Tenant, str], object], tenant: Tenant) -> None:
        try:
            while not self.is_stopping.is_set():
                act(tenant, self.scenario.address())
                self.answered[kind].append(time.monotonic())
        except BaseException as error:  # noqa: BLE001 - raised by the test
            self.errors.append(error)

    def wait(self, count: int) -> None:
        """Wait until this many more emails are acknowledged. Raises the error of a program."""
        wanted = self.count + count
        while self.count < wanted:
            if self.errors:
                raise self.errors[0]
            time.sleep(0.02)

    def longest_refusal(self, kind: str) -> float:
        return max(later - before for before, later in itertools.pairwise(sorted(self.answered[kind])))


@pytest.fixture
def cluster(monkeypatch) -> Iterator[Cluster]:
    with running_cluster() as cluster:
        monkeypatch.setenv("DATABASE_URL", cluster.url)
        yield cluster


@contextmanager
def pooler_of(cluster: Cluster, directory: Path) -> Iterator[PgBouncer]:
    """Yield a PgBouncer that follows the primary."""
    for assignment in role_settings():
        cluster.run_as_superuser(f"ALTER ROLE postrider {assignment}")
    directory.mkdir()
    with (
        running_balancer(cluster, directory) as balancer,
        running_pgbouncer(balancer, pool_size=POOL_SIZE) as pooler,
    ):
        yield pooler


def test_the_loss_of_the_primary_under_load_loses_no_email(cluster, tmp_path):
    with running_scenario(tmp_path) as scenario:
        scenario.stack.start("worker-2")
        lose(cluster.primary(), cluster, scenario)


@pytest.mark.long
@pytest.mark.parametrize("has_pooler", [False, True], ids=["directly", "pgbouncer"])
def test_losses_in_turn_lose_no_email(cluster, tmp_path, has_pooler):
    with ExitStack() as stack:
        pooler = stack.enter_context(pooler_of(cluster, tmp_path / "pooler")).url if has_pooler else ""
        scenario = stack.enter_context(running_scenario(tmp_path, pooler=pooler))
        scenario.stack.start("worker-2")
        for _ in range(ROUNDS):
            lost = cluster.primary()
            lose(lost, cluster, scenario)
            lost.start()
            cluster.wait_for_standby()
        lose(cluster.standby(), cluster, scenario)


def lose(lost: DatabaseServer, cluster: Cluster, scenario: Scenario) -> None:
    """Lose a server under load; audit everything that was sent until now, and report the figures."""
    is_primary, ledger = lost.is_primary(), scenario.ledger
    before = len(ledger.accepted), len(ledger.messages)
    with Load(scenario) as load:
        load.wait(BEFORE)
        lost_at = time.monotonic()
        lost.lose_power()
        # Replies that were on their way.
        time.sleep(1)
        load.wait(AFTER)
    scenario.wait_until_idle()
    idle_at = time.monotonic()
    assert load.errors == []
    accepted, messages = len(ledger.accepted) - before[0], len(ledger.messages) - before[1]
    assert accepted == load.count
    # An email that is missing, and a copy without a note on the timeline, are violations.
    assert scenario.find_violations() == []
    assert cluster.primary() is not lost
    figures = {
        "lost server": "primary" if is_primary else "standby",
        "emails acknowledged": accepted,
        "lost": 0,
        "copies with a note": messages - accepted,
        "copies without a note": 0,
        **{f"seconds of refusal over {kind}": round(load.longest_refusal(kind), 1) for kind in load.answered},
        "seconds until all are delivered": round(idle_at - lost_at, 1),
    }
    sys.stdout.write(f"{json.dumps(figures)}\n")
    assert max(map(load.longest_refusal, load.answered)) < MOST_REFUSAL_SECONDS
