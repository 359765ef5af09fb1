"""What goes wrong, one thing after another: processes, Redis, PostgreSQL, its disk, a clock."""

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

from embedded.servers import postgres, redis
from embedded.servers.server import Server
from tests.chaos import clocks
from tests.chaos.disk import Disk
from tests.stack.scenario import LEASE_SECONDS, Scene
from tests.stack.stack import wait_for

# The server is crashed, the machine is not: a commit must have reached the kernel, and need not have reached the disk.
SETTINGS = {**postgres.THROW_AWAY, "synchronous_commit": "on"}
FLAPPING = [200, 503, 200, 200, 500, 200]
# From nothing at all to some segments of WAL: what runs out first, a table or the log, is not always the same.
SPARE_BYTES = (0, 1 << 20, 4 << 20, 20 << 20)


@dataclass
class Storm:
    """What goes wrong, one thing after another."""

    scene: Scene
    random: random.Random
    database: Server
    disk: Disk | None
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
        acts = [
            self.kill_worker, self.end_worker, self.kill_web, self.kill_beat, self.kill_inbound,
            self.flush_redis, self.stop_redis, self.freeze_redis, self.terminate_connections, self.restart_database,
            self.freeze_worker, self.flap,
        ]  # fmt: skip
        acts += [self.fill_disk] if self.disk else []
        return acts + ([self.shift_clock] if clocks.library() else [])

    @property
    def left_out(self) -> list[str]:
        """What this machine does not let us do."""
        return ["fill_disk"] * (self.disk is None) + ["shift_clock"] * (clocks.library() is None)

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
        self.scene.stack.drop_connections()

    def restart_database(self) -> None:
        """End PostgreSQL as a crash does, or in good order, and start it on the same cluster and port."""
        os.kill(self.database.pid, self.random.choice([signal.SIGQUIT, signal.SIGINT]))
        self.database.process.wait(30)
        time.sleep(self.random.uniform(0, 1))
        self._start_database()

    def fill_disk(self) -> None:
        """Leave PostgreSQL no room for a while; without any for its log it dies, and needs its keeper."""
        assert self.disk
        self.disk.fill(spare_bytes=self.random.choice(SPARE_BYTES))
        time.sleep(self.random.uniform(2, 6))
        self.disk.free()
        wait_for(self._has_database, seconds=60, what="the database is back")

    def shift_clock(self) -> None:
        """Give a worker a wall clock that is wrong, for as long as it lives."""
        self._again("worker-2", signal.SIGTERM, **clocks.wrong_clock(self.random.choice(clocks.OFFSETS_SECONDS)))

    def freeze_worker(self) -> None:
        """Let a worker sleep for longer than its lease, and wake it to what others have done meanwhile."""
        self._freeze([self.scene.stack.processes["worker"].pid], LEASE_SECONDS + self.random.uniform(0.5, 2))

    def flap(self) -> None:
        calm = [200]
        self.scene.receiver.statuses = FLAPPING if self.scene.receiver.statuses == calm else calm

    def _has_database(self) -> bool:
        if not self.database.is_alive:
            self._start_database()
        with suppress(psycopg.OperationalError):
            return self.scene.stack.query("SELECT 1") == [(1,)]
        return False

    def _start_database(self) -> None:
        home = self.database.temporary
        assert home
        again = postgres.start(home, settings=SETTINGS, port=self.database.port)
        self.database = replace(again, temporary=home)

    def _again(self, name: str, number: signal.Signals, **variables: str) -> None:
        process = self.scene.stack.processes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        process.wait(90)
        self.scene.stack.start(name, **variables)

    @staticmethod
    def _freeze(pids: list[int], seconds: float) -> None:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
