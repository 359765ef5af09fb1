"""Fault injection into processes, Redis, PostgreSQL, its disk, and a clock."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import psycopg
from redis import Redis

from tests.chaos import clocks
from tests.chaos.disk import Disk
from tests.chaos.unreliable_relay import MODES
from tests.stack.scenario import LEASE_SECONDS, Scenario
from tests.stack.stack import wait_for
from tools.embedded.servers import postgres, redis
from tools.embedded.servers.server import ManagedServer

# The server crashes but the machine does not: a commit must reach the kernel, but not the disk.
SETTINGS = {**postgres.THROW_AWAY, "synchronous_commit": "on"}
FLAPPING = [200, 503, 200, 200, 500, 200]
# From zero to some segments of WAL, so that either a table or the WAL runs out of space first.
SPARE_BYTES = (0, 1 << 20, 4 << 20, 20 << 20)


@dataclass
class FaultInjector:
    """Injects one fault after another."""

    scenario: Scenario
    random: random.Random
    database: ManagedServer
    disk: Disk | None
    done: Counter[str] = field(default_factory=Counter)
    error: str = ""

    def run(self, until: float) -> None:
        remaining: list[Callable[[], None]] = []
        try:
            while time.monotonic() < until:
                # In rounds, so that a short run includes every fault.
                remaining = remaining or self.random.sample(self.faults(), len(self.faults()))
                fault = remaining.pop()
                fault()
                self.done[fault.__name__] += 1
                time.sleep(self.random.uniform(0.2, 2))
                self.start_ended()
        except Exception as error:  # noqa: BLE001 - reported as a violation
            self.error = f"fault injection failed: {error!r}"

    def start_ended(self) -> None:
        """Start the processes that have ended, as a process manager does.

        They may have died of a failpoint after its fault, or of libfaketime: now and then it makes a call to wait fail.
        """
        processes = self.scenario.stack.processes
        for name in [name for name, process in processes.items() if process.poll() is not None]:
            del processes[name]
            self.start(name)
            self.done[f"started {name} again"] += 1

    def start(self, name: str) -> None:
        self.scenario.stack.start(name)

    def faults(self) -> list[Callable[[], None]]:
        faults = [
            self.kill_worker, self.end_worker, self.kill_web, self.kill_beat, self.kill_inbound,
            self.flush_redis, self.stop_redis, self.freeze_redis, self.terminate_connections, self.restart_database,
            self.freeze_worker, self.flap_endpoint,
        ]  # fmt: skip
        faults += [self.fill_disk] if self.disk else []
        # Often: each breaks the deliveries of a few seconds only.
        faults += [self.break_transport] * 6 if self.scenario.relays else []
        return faults + ([self.shift_clock] if clocks.faketime_library() else [])

    def recover_all(self) -> None:
        """End the faults that last, before the queues are emptied."""

    @property
    def unavailable(self) -> list[str]:
        """The faults that this machine does not support."""
        return ["fill_disk"] * (self.disk is None) + ["shift_clock"] * (clocks.faketime_library() is None)

    def kill_worker(self) -> None:
        self._restart(self.random.choice(["worker", "worker-2"]), signal.SIGKILL)

    def end_worker(self) -> None:
        self._restart("worker-2", signal.SIGTERM)

    def kill_web(self) -> None:
        self._restart("web", signal.SIGKILL)

    def kill_beat(self) -> None:
        self._restart(self.random.choice(["beat", "beat-2"]), signal.SIGKILL)

    def kill_inbound(self) -> None:
        self._restart("inbound", signal.SIGKILL)

    def flush_redis(self) -> None:
        with (
            suppress(Exception),
            Redis.from_url(self.scenario.stack.environment["REDIS_URL"], socket_timeout=2) as client,
        ):
            client.flushall()

    def stop_redis(self) -> None:
        server = self.scenario.stack.redis
        password = server.url.partition("://:")[2].partition("@")[0]
        server.process.kill()
        server.process.wait()
        time.sleep(self.random.uniform(0.5, 3))
        restarted = redis.start(server.temporary_directory, port=server.port, password=password)
        self.scenario.stack.redis = replace(restarted, temporary_directory=server.temporary_directory)

    def freeze_redis(self) -> None:
        self._freeze([self.scenario.stack.redis.pid], self.random.uniform(0.5, 3))

    def terminate_connections(self) -> None:
        self.scenario.stack.drop_connections()

    def restart_database(self) -> None:
        """Crash or stop PostgreSQL, and start it on the same cluster and port."""
        os.kill(self.database.pid, self.random.choice([signal.SIGQUIT, signal.SIGINT]))
        self.database.process.wait(90)
        time.sleep(self.random.uniform(0, 1))
        self._start_database()

    def fill_disk(self) -> None:
        """Fill the disk of PostgreSQL for a while; without space for its WAL it crashes and must be restarted."""
        assert self.disk
        self.disk.fill(spare_bytes=self.random.choice(SPARE_BYTES))
        time.sleep(self.random.uniform(2, 6))
        self.disk.free()
        wait_for(self._has_database, seconds=60, what="the database accepts connections")

    def shift_clock(self) -> None:
        """Restart a worker with a wrong wall clock."""
        self._restart("worker-2", signal.SIGTERM, **clocks.wrong_clock(self.random.choice(clocks.OFFSETS_SECONDS)))

    def freeze_worker(self) -> None:
        """Stop a worker for longer than its lease, then continue it after others have taken its entries over."""
        self._freeze([self.scenario.stack.processes["worker"].pid], LEASE_SECONDS + self.random.uniform(0.5, 2))

    def flap_endpoint(self) -> None:
        healthy = [200]
        self.scenario.receiver.statuses = FLAPPING if self.scenario.receiver.statuses == healthy else healthy

    def break_transport(self) -> None:
        """Let one of the transports fail in some way for a while, mostly the preferred one."""
        relay = self.random.choice([*self.scenario.relays, self.scenario.relays[0]])
        relay.set_mode(self.random.choice(MODES[1:]))
        self.done[f"break_transport_{relay.name}_{relay.mode}"] += 1
        time.sleep(self.random.uniform(0.5, 4))
        relay.set_mode("works")

    def _has_database(self) -> bool:
        if not self.database.is_alive:
            self._start_database()
        with suppress(psycopg.OperationalError):
            return self.scenario.stack.query("SELECT 1") == [(1,)]
        return False

    def _start_database(self) -> None:
        server_directory = self.database.temporary_directory
        assert server_directory
        restarted = postgres.start(server_directory, settings=SETTINGS, port=self.database.port)
        self.database = replace(restarted, temporary_directory=server_directory)

    def _restart(self, name: str, number: signal.Signals, **variables: str) -> None:
        self._end(name, number)
        self.scenario.stack.start(name, **variables)

    def _end(self, name: str, number: signal.Signals) -> None:
        process = self.scenario.stack.processes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        process.wait(90)

    @staticmethod
    def _freeze(pids: list[int], seconds: float) -> None:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
