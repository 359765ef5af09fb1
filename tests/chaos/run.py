"""A seeded run of everything at once: callers, and a storm that kills, stops and empties what the service stands on.

The seed decides what is done, in which order and with what pauses; the machine decides the rest. It ends with calm,
empty queues and the auditor.
"""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg

from embedded.servers import postgres
from embedded.servers.homes import make_temporary_home, remove_temporary_home
from tests.chaos.callers import Caller
from tests.chaos.chaos import SETTINGS, Storm
from tests.chaos.disk import Disk
from tests.stack.scenario import Scene, running_scene

CALLERS = 3
# After the storm, and as long again for every so many recipients: two cores send and tell of a few hundred a second.
CALM_SECONDS = 300.0
RECIPIENTS_A_CALM = 50_000


@dataclass(frozen=True)
class Report:
    """What a run did and found; empty findings are the proof."""

    seed: int
    done: Counter[str]
    sizes: dict[str, int]
    findings: list[str]
    left_out: list[str]

    def __str__(self) -> str:
        acts = ", ".join(f"{name} {count}" for name, count in sorted(self.done.items()))
        sizes = ", ".join(f"{count} {name}" for name, count in self.sizes.items())
        left_out = [f"left out, this machine does not let us: {', '.join(self.left_out)}"] * bool(self.left_out)
        found = [*self.findings[:40], f"{len(self.findings)} findings"]
        return "\n".join([f"seed {self.seed}: {acts}", sizes, *left_out, *found])


def run(logs: Path, *, seed: int, seconds: float, bulk: int = 0) -> Report:
    """Do a run on a PostgreSQL and a Redis of its own; see `Caller` for bulk."""
    with _home() as (home, disk):
        database = replace(postgres.start(home, settings=SETTINGS), temporary=home)
        before = os.environ.get("DATABASE_URL")
        os.environ["DATABASE_URL"] = database.url
        storm = None
        try:
            with running_scene(logs) as scene:
                scene.stack.start("worker-2", "beat", "beat-2")
                storm = Storm(scene, random.Random(seed), database, disk)
                callers = [Caller(scene, random.Random(seed * 1000 + number), bulk) for number in range(CALLERS)]
                _let_loose(storm, callers, seconds)
                return _conclude(scene, storm, callers, seed)
        finally:
            (storm.database if storm else database).stop()
            if before is not None:
                os.environ["DATABASE_URL"] = before


@contextmanager
def _home() -> Iterator[tuple[Path, Disk | None]]:
    """Yield the directory of PostgreSQL's files, a disk of its own where that is possible."""
    home = make_temporary_home()
    disk = Disk.mounted(home)
    try:
        yield home, disk
    finally:
        if disk:
            disk.unmount()
        remove_temporary_home(home)


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
    recipients = sum(len(sent.addresses) for sent in scene.ledger.sent)
    try:
        scene.settle(seconds=CALM_SECONDS * (1 + recipients / RECIPIENTS_A_CALM))
    except AssertionError as error:
        findings.append(str(error))
    findings += scene.findings()
    done = sum((caller.done for caller in callers), storm.done)
    ledger = scene.ledger
    sizes = {
        "emails": len(ledger.sent), "recipients": recipients, "copies": len(ledger.copies), "posts": len(ledger.posts),
        "cancelled": sum(sent.cancelled_at is not None for sent in ledger.sent),
        "suppressed": len(ledger.suppressed), "reports": len(ledger.reports), **_doubts(scene),
    }  # fmt: skip
    return Report(seed, done, sizes, findings, storm.left_out)


def _doubts(scene: Scene) -> dict[str, int]:
    with psycopg.connect(scene.stack.database) as connection:
        rows = connection.execute(
            "SELECT payload->>'reason', count(*) FROM emails_event WHERE payload->>'reason' IS NOT NULL GROUP BY 1"
        ).fetchall()
    return {f"told {reason}": count for reason, count in rows}
