"""Chaos run with a seed: callers use the service while faults are injected into its processes and servers.

The seed determines the actions, their order and pauses; the machine determines the timing. The run ends when the
queues are empty and the auditor has checked all guarantees.
"""

import os
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg

from embedded.servers import postgres
from embedded.servers.server_directories import make_temporary_directory, remove_temporary_directory
from tests.chaos.callers import Caller
from tests.chaos.chaos import SETTINGS, FaultInjector
from tests.chaos.disk import Disk
from tests.chaos.feed_reader import FeedReader
from tests.chaos.stream_reader import StreamReader
from tests.stack.scenario import Scenario, running_scenario

CALLERS = 3
# The longest time without progress while the queues are emptied after the faults.
SETTLE_SECONDS = 300.0
# A word with a digit: an address, an id or a number.
NUMBERED = re.compile(r"\S*\d\S*")


@dataclass(frozen=True)
class ChaosReport:
    """The actions and violations of a run; without violations, all guarantees hold."""

    seed: int
    done: Counter[str]
    sizes: dict[str, int]
    violations: list[str]
    unavailable: list[str]

    def __str__(self) -> str:
        done = ", ".join(f"{name} {count}" for name, count in sorted(self.done.items()))
        sizes = ", ".join(f"{count} {name}" for name, count in self.sizes.items())
        unavailable = [f"not supported by this machine: {', '.join(self.unavailable)}"] * bool(self.unavailable)
        kinds = Counter(NUMBERED.sub("…", violation) for violation in self.violations)
        found = [*self.violations[:40], *(f"{count} times: {kind}" for kind, count in kinds.most_common(20))]
        found.append(f"{len(self.violations)} violations")
        return "\n".join([f"seed {self.seed}: {done}", sizes, *unavailable, *found])


def run(logs: Path, *, seed: int, seconds: float, bulk: int = 0, has_two_transports: bool = False) -> ChaosReport:
    """Run with a separate PostgreSQL and Redis; see `Caller` for bulk."""
    with _database_directory() as (directory, disk):
        database = replace(postgres.start(directory, settings=SETTINGS), temporary_directory=directory)
        previous_url = os.environ.get("DATABASE_URL")
        os.environ["DATABASE_URL"] = database.url
        injector = None
        try:
            with running_scenario(logs, has_two_transports=has_two_transports) as scenario:
                scenario.stack.start("worker-2", "beat", "beat-2")
                injector = FaultInjector(scenario, random.Random(seed), database, disk)
                feed = FeedReader(scenario, random.Random(seed - 1))
                stream = StreamReader(scenario, random.Random(seed - 2))
                callers = [Caller(scenario, random.Random(seed * 1000 + number), bulk) for number in range(CALLERS)]
                _run_threads(injector, [feed, stream, *callers], seconds)
                report = _finish(scenario, injector, callers, seed)
                found = [*feed.find_violations(), *stream.find_violations(), *feed.find_timeline_violations()]
                return replace(report, violations=[*report.violations, *found])
        finally:
            (injector.database if injector else database).stop()
            if previous_url is not None:
                os.environ["DATABASE_URL"] = previous_url


@contextmanager
def _database_directory() -> Iterator[tuple[Path, Disk | None]]:
    """Yield the directory of PostgreSQL's files, on a separate file system if possible."""
    directory = make_temporary_directory()
    disk = Disk.mounted(directory)
    try:
        yield directory, disk
    finally:
        if disk:
            disk.unmount()
        remove_temporary_directory(directory)


def _run_threads(injector: FaultInjector, callers: Sequence[Caller | FeedReader], seconds: float) -> None:
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=caller.run, args=[until]) for caller in callers]
    for thread in threads:
        thread.start()
    # Faults run in this thread: a server exits with the thread that started it.
    injector.run(until)
    for thread in threads:
        thread.join()


def _finish(scenario: Scenario, injector: FaultInjector, callers: list[Caller], seed: int) -> ChaosReport:
    violations = [party.error for party in (injector, *callers) if party.error]
    scenario.receiver.statuses = [200]
    recipients = sum(len(email.addresses) for email in scenario.ledger.accepted)
    try:
        scenario.wait_until_idle(seconds=SETTLE_SECONDS)
    except AssertionError as error:
        violations.append(str(error))
    violations += scenario.find_violations()
    done = sum((caller.done for caller in callers), injector.done)
    ledger = scenario.ledger
    sizes = {
        "emails": len(ledger.accepted), "recipients": recipients, "messages": len(ledger.messages),
        "webhook requests": len(ledger.requests),
        "cancelled": sum(email.cancelled_at is not None for email in ledger.accepted),
        "suppressed": len(ledger.suppressions), "reports": len(ledger.reports), **_count_copies(scenario),
        **_count_reasons(scenario),
    }  # fmt: skip
    return ChaosReport(seed, done, sizes, violations, injector.unavailable)


def _count_copies(scenario: Scenario) -> dict[str, int]:
    """Return the messages by transport, and the second copies; nothing with a single transport."""
    if not scenario.relays:
        return {}
    messages = scenario.ledger.messages
    by_transport = Counter(f"messages by {message.transport}" for message in messages)
    copies = Counter((message.recipient, message.compressed) for message in messages)
    return {**by_transport, "second copies": sum(count - 1 for count in copies.values())}


def _count_reasons(scenario: Scenario) -> dict[str, int]:
    with psycopg.connect(scenario.stack.database) as connection:
        rows = connection.execute(
            "SELECT payload->>'reason', count(*) FROM emails_event WHERE payload->>'reason' IS NOT NULL GROUP BY 1"
        ).fetchall()
    return {f"events with {reason}": count for reason, count in rows}
