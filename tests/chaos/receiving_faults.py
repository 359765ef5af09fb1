"""Faults of a chaos run in which email is received: those of the servers, and failpoints of all processes."""

import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass

import psycopg

from core.lib.worker.failpoints import POINTS
from tests.chaos import clocks
from tests.chaos.chaos import FaultInjector
from tests.chaos.mail_hosts import REPLY_SECONDS
from tests.stack.scenario import LEASE_SECONDS
from tests.stack.stack import wait_for

ACTIONS = ("kill", "kill", "kill", "raise", f"sleep={LEASE_SECONDS + 2}", "drop_database", "drop_redis")
INBOUND_SERVERS = ("inbound", "inbound-2")
MAX_CONNECTIONS = 1_000
SPARE_CONNECTIONS = (1, 3, 6)
TERMINATE_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
"""
# A busy machine needs most of it to start the process.
HIT_SECONDS = 30.0


@dataclass
class ReceivingFaultInjector(FaultInjector):
    """Injects faults into receiving. ports: those of INBOUND_SERVERS. is_short_of_connections: see `run_receiving`."""

    ports: tuple[int, ...] = ()
    is_short_of_connections: bool = False

    def faults(self) -> list[Callable[[], None]]:
        faults = [
            self.kill_inbound, self.end_inbound, self.freeze_inbound, self.kill_worker, self.end_worker, self.kill_web,
            self.kill_beat, self.flush_redis, self.stop_redis, self.freeze_redis, self.terminate_connections,
            self.restart_database, self.freeze_worker, self.freeze_database, self.flap_endpoint,
        ]  # fmt: skip
        faults += [self.fill_disk] if self.disk else []
        faults += [self.shift_clock] if clocks.faketime_library() else []
        # Often: they cover the states between a commit and its reply, and during reading.
        faults += [self.fail_in_inbound] * 5 + [self.fail_in_worker] * 4
        return faults + [self.starve_database] * (len(faults) if self.is_short_of_connections else 0)

    def kill_inbound(self) -> None:
        self._restart_inbound(signal.SIGKILL)

    def end_inbound(self) -> None:
        self._restart_inbound(signal.SIGTERM)

    def freeze_inbound(self) -> None:
        """Stop an inbound server for longer than the hosts wait: it stores messages that another one has, too."""
        pid = self.scenario.stack.processes[self.random.choice(INBOUND_SERVERS)].pid
        self._freeze([pid], REPLY_SECONDS + self.random.uniform(-3, 3))

    def freeze_database(self) -> None:
        self._freeze([self.database.pid], self.random.uniform(0.5, 3))

    def starve_database(self) -> None:
        """Use up the connections of PostgreSQL except for a few, for up to three leases."""
        with ExitStack() as stack:
            taken = self._take_connections(stack)
            for connection in taken[: self.random.choice(SPARE_CONNECTIONS)]:
                connection.close()
            time.sleep(self.random.uniform(1, 3 * LEASE_SECONDS))

    def _take_connections(self, stack: ExitStack) -> list[psycopg.Connection]:
        """Return all connections that are free, and those that the service had, which are ended first."""
        taken: list[psycopg.Connection] = []
        with suppress(psycopg.OperationalError):
            while len(taken) < MAX_CONNECTIONS:
                connection = psycopg.connect(self.scenario.stack.database, autocommit=True)
                taken.append(stack.enter_context(closing(connection)))
                if len(taken) == 1:
                    connection.execute(TERMINATE_OTHERS)
        return taken

    def fail_in_inbound(self) -> None:
        name = self.random.choice(INBOUND_SERVERS)
        self._fail_at("inbound", name, lambda plan: self.start_inbound(name, FAULT_PLAN=plan))

    def fail_in_worker(self) -> None:
        self._fail_at("worker", "worker", lambda plan: self.scenario.stack.start("worker", FAULT_PLAN=plan))

    def start(self, name: str) -> None:
        if name in INBOUND_SERVERS:
            self.start_inbound(name)
        else:
            super().start(name)

    def start_inbound(self, name: str, **variables: str) -> None:
        port = str(self.ports[INBOUND_SERVERS.index(name)])
        stack = self.scenario.stack
        stack.start(name, **{**variables, "INBOUND_PORT": port})

    def _fail_at(self, kind: str, name: str, start: Callable[[str], None]) -> None:
        """Restart a process with a planned failure, of which it may die."""
        points = [point for point, (process, _) in POINTS.items() if process == kind and point.startswith("receiving.")]
        point, action = self.random.choice(points), self.random.choice(ACTIONS)
        since = len(self.scenario.log(name))
        self._end(name, signal.SIGKILL)
        start(f"{point}:{self.random.randint(1, 6)}:{action}")
        with suppress(AssertionError):
            wait_for(
                lambda: self.scenario.has_hit(name, point, since=since), seconds=HIT_SECONDS, what=f"{name} at {point}"
            )
            self.done[f"{point} {action.partition('=')[0]}"] += 1
        time.sleep(self.random.uniform(0, 1))

    def _restart_inbound(self, number: signal.Signals) -> None:
        name = self.random.choice(INBOUND_SERVERS)
        self._end(name, number)
        self.start_inbound(name)
