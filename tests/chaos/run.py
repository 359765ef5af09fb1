"""A seeded run of everything at once: callers, and a storm that kills, stops and empties what the service stands on.

The seed decides what is done, in which order and with what pauses; the machine decides the rest. It ends with calm,
empty queues and the auditor.
"""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import psycopg
from redis import Redis

from embedded import postgres, redis
from embedded.server import Server
from tests.audit.ledger import Sent
from tests.flows.scene import LEASE_SECONDS, Scene, Tenant, running_scene

CALLERS = 3
# The server is crashed, the machine is not: a commit must have reached the kernel, and need not have reached the disk.
SETTINGS = {**postgres.THROW_AWAY, "synchronous_commit": "on"}
LIVES = ("delivered", "bounced", "failed", "deferred", "complained", "opened", "clicked", "unsubscribed")
CALM_SECONDS = 300.0
FLAPPING = [200, 503, 200, 200, 500, 200]
TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@dataclass
class Caller:
    """One thread of requests, by a random source of its own."""

    scene: Scene
    random: random.Random
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
            (self.cancel, 3), (self.suppress, 2), (self.resend, 2), (self.report, 1),
        ]  # fmt: skip

    @property
    def tenant(self) -> Tenant:
        return self.random.choice(self.scene.tenants)

    def send(self) -> None:
        self._keep(self.scene.send(self.tenant, self.scene.address()))

    def send_to_two(self) -> None:
        self._keep(self.scene.send(self.tenant, self.scene.address(), self.scene.address()))

    def batch(self) -> None:
        self.sent += self.scene.batch(self.tenant, *(self.scene.address() for _ in range(self.random.randint(2, 8))))

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


@dataclass
class Storm:
    """What goes wrong, one thing after another."""

    scene: Scene
    random: random.Random
    database: Server
    done: Counter[str] = field(default_factory=Counter)
    error: str = ""

    def run(self, until: float) -> None:
        round_: list[Callable[[], None]] = []
        try:
            while time.monotonic() < until:
                # Round by round, so that a short storm has something of everything.
                round_ = round_ or self.random.sample(self.acts(), len(self.acts()))
                act = round_.pop()
                act()
                self.done[act.__name__] += 1
                time.sleep(self.random.uniform(0.2, 2))
        except Exception as error:  # noqa: BLE001 - told in the findings
            self.error = f"the storm broke off: {error!r}"

    def acts(self) -> list[Callable[[], None]]:
        return [
            self.kill_worker, self.end_worker, self.kill_web, self.kill_beat, self.kill_inbound,
            self.flush_redis, self.stop_redis, self.freeze_redis, self.terminate_connections, self.restart_database,
            self.freeze_worker, self.flap,
        ]  # fmt: skip

    def kill_worker(self) -> None:
        self._again(self.random.choice(["worker", "worker-2"]), signal.SIGKILL)

    def end_worker(self) -> None:
        self._again("worker-2", signal.SIGTERM)

    def kill_web(self) -> None:
        self._again("web", signal.SIGKILL)

    def kill_beat(self) -> None:
        self._again(self.random.choice(["beat", "beat-2"]), signal.SIGKILL)

    def kill_inbound(self) -> None:
        self._again("inbound", signal.SIGKILL)

    def flush_redis(self) -> None:
        with suppress(Exception), Redis.from_url(self.scene.stack.environment["REDIS_URL"], socket_timeout=2) as client:
            client.flushall()

    def stop_redis(self) -> None:
        server = self.scene.stack.redis
        password = server.url.partition("://:")[2].partition("@")[0]
        server.process.kill()
        server.process.wait()
        time.sleep(self.random.uniform(0.5, 3))
        again = redis.start(server.temporary, port=server.port, password=password)
        self.scene.stack.redis = replace(again, temporary=server.temporary)

    def freeze_redis(self) -> None:
        self._freeze([self.scene.stack.redis.pid], self.random.uniform(0.5, 3))

    def terminate_connections(self) -> None:
        self.scene.stack.query(TERMINATE)

    def restart_database(self) -> None:
        """End PostgreSQL as a crash does, or in good order, and start it on the same cluster and port."""
        home, port = self.database.temporary, self.database.port
        assert home
        os.kill(self.database.pid, self.random.choice([signal.SIGQUIT, signal.SIGINT]))
        self.database.process.wait(30)
        time.sleep(self.random.uniform(0, 1))
        again = postgres.start(home, settings=SETTINGS, port=port)
        self.database = replace(again, temporary=home)

    def freeze_worker(self) -> None:
        """Let a worker sleep for longer than its lease, and wake it to what others have done meanwhile."""
        self._freeze([self.scene.stack.processes["worker"].pid], LEASE_SECONDS + self.random.uniform(0.5, 2))

    def flap(self) -> None:
        calm = [200]
        self.scene.receiver.statuses = FLAPPING if self.scene.receiver.statuses == calm else calm

    def _again(self, name: str, number: signal.Signals) -> None:
        process = self.scene.stack.processes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        process.wait(90)
        self.scene.stack.start(name)

    @staticmethod
    def _freeze(pids: list[int], seconds: float) -> None:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@dataclass(frozen=True)
class Report:
    """What a run did and found; empty findings are the proof."""

    seed: int
    done: Counter[str]
    sizes: dict[str, int]
    findings: list[str]

    def __str__(self) -> str:
        acts = ", ".join(f"{name} {count}" for name, count in sorted(self.done.items()))
        sizes = ", ".join(f"{count} {name}" for name, count in self.sizes.items())
        return "\n".join([f"seed {self.seed}: {acts}", sizes, *self.findings[:40], f"{len(self.findings)} findings"])


def run(logs: Path, *, seed: int, seconds: float) -> Report:
    """Do a run on a PostgreSQL and a Redis of its own."""
    database = postgres.start_throw_away(settings=SETTINGS)
    before = os.environ.get("DATABASE_URL")
    os.environ["DATABASE_URL"] = database.url
    storm = None
    try:
        with running_scene(logs) as scene:
            scene.stack.start("worker-2", "beat", "beat-2")
            storm = Storm(scene, random.Random(seed), database)
            callers = [Caller(scene, random.Random(seed * 1000 + number)) for number in range(CALLERS)]
            _let_loose(storm, callers, seconds)
            return _conclude(scene, storm, callers, seed)
    finally:
        (storm.database if storm else database).stop()
        if before is not None:
            os.environ["DATABASE_URL"] = before


def _let_loose(storm: Storm, callers: list[Caller], seconds: float) -> None:
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=caller.run, args=[until]) for caller in callers]
    for thread in threads:
        thread.start()
    # In this thread: the servers that it starts end with the one that has started them.
    storm.run(until)
    for thread in threads:
        thread.join()


def _conclude(scene: Scene, storm: Storm, callers: list[Caller], seed: int) -> Report:
    findings = [party.error for party in (storm, *callers) if party.error]
    scene.receiver.statuses = [200]
    try:
        scene.settle(seconds=CALM_SECONDS)
    except AssertionError as error:
        findings.append(str(error))
    findings += scene.findings()
    done = sum((caller.done for caller in callers), storm.done)
    ledger = scene.ledger
    sizes = {
        "emails": len(ledger.sent), "copies": len(ledger.copies), "posts": len(ledger.posts),
        "cancelled": sum(sent.cancelled_at is not None for sent in ledger.sent),
        "suppressed": len(ledger.suppressed), "reports": len(ledger.reports), **_doubts(scene),
    }  # fmt: skip
    return Report(seed, done, sizes, findings)


def _doubts(scene: Scene) -> dict[str, int]:
    with psycopg.connect(scene.stack.database) as connection:
        rows = connection.execute(
            "SELECT payload->>'reason', count(*) FROM emails_event WHERE payload->>'reason' IS NOT NULL GROUP BY 1"
        ).fetchall()
    return {f"told {reason}": count for reason, count in rows}
