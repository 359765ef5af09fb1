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
from typing import Any

import psycopg

from tests.audit.auditor import wire_id
from tests.audit.ledger import Ledger
from tests.chaos.callers import Caller
from tests.chaos.chaos import SETTINGS, FaultInjector
from tests.chaos.disk import Disk
from tests.chaos.feed_reader import FeedReader
from tests.chaos.limiting_receivers import running_receivers
from tests.chaos.mail_hosts import MailHost
from tests.chaos.pace_faults import PaceFaultInjector, make_receivers
from tests.chaos.received_view import find_violations_of_views
from tests.chaos.receiving_faults import INBOUND_SERVERS, ReceivingFaultInjector
from tests.chaos.receiving_routes import create_routes, record_forwards
from tests.chaos.stream_reader import StreamReader
from tests.stack.scenario import Scenario, message_id_of, running_scenario
from tests.stack.stack import free_port
from tools.embedded.servers import postgres
from tools.embedded.servers.server_directories import make_temporary_directory, remove_temporary_directory

CALLERS = 3
HOSTS = 5
# The longest time without progress while the queues are emptied after the faults.
SETTLE_SECONDS = 300.0
# More than a run receives.
RECEIVING = {"RECEIVING_DAILY_LIMIT": "999999999", "RECEIVING_STORAGE": "999999999999"}
# Seconds in which emails of run_expiry expire, and those from the last check to the receipt of the final dot.
EXPIRIES, DOT_SECONDS = (2.0, 60.0), 0.5
# Events of outcomes; a bounce may follow a delivery.
EXPIRED = """
SELECT r.id, r.address, e.expires_at, r.reason, (
           SELECT count(*) FROM emails_event v WHERE v.recipient_id = r.id AND v.kind IN ('sent', 'failed'))
         + (e.status = 'cancelled')::int + (r.state = 'bounced' AND r.sent_at IS NULL)::int
  FROM emails_recipient r JOIN emails_email e ON e.id = r.email_id WHERE e.expires_at IS NOT NULL
"""
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
    with _running_injector(logs, seed, has_two_transports=has_two_transports) as injector:
        callers = [Caller(injector.scenario, random.Random(seed * 1000 + number), bulk) for number in range(CALLERS)]
        return _run_until_idle(injector, callers, seed=seed, seconds=seconds)


def run_receiving(logs: Path, *, seed: int, seconds: float, is_short_of_connections: bool = False) -> ChaosReport:
    """Let mail hosts deliver to two inbound servers while faults are injected, instead of callers of the API.

    is_short_of_connections: half of the faults use up the connections of the database.
    """
    with _running_injector(logs, seed, **RECEIVING) as started:
        scenario = started.scenario
        ports = int(scenario.stack.environment["INBOUND_PORT"]), free_port()
        injector = ReceivingFaultInjector(
            scenario,
            started.random,
            started.database,
            started.disk,
            ports=ports,
            is_short_of_connections=is_short_of_connections,
        )
        injector.start_inbound(INBOUND_SERVERS[1])
        create_routes(scenario)
        hosts = [MailHost(scenario, random.Random(seed * 1000 + number), ports=ports) for number in range(HOSTS)]
        try:
            report = _run_until_idle(injector, hosts, seed=seed, seconds=seconds)
        finally:
            # It may have been started again.
            started.database = injector.database
        sizes = {**report.sizes, "acknowledged messages": len(scenario.ledger.received)}
        return replace(report, sizes=sizes, violations=[*report.violations, *find_violations_of_views(scenario)])


def run_pace(logs: Path, *, seed: int, seconds: float) -> ChaosReport:
    """Deliver to receivers that slow, suspend and recover while faults are injected into the workers."""
    ledger = Ledger()
    receivers = make_receivers(ledger)
    with (
        running_receivers(receivers, logs) as settings,
        _running_injector(logs, seed, ledger=ledger, **settings) as started,
    ):
        scenario = started.scenario
        scenario.domains = tuple(receiver.domain for receiver in receivers)
        injector = PaceFaultInjector(scenario, started.random, started.database, started.disk, receivers=receivers)
        callers = [Caller(scenario, random.Random(seed * 1000 + number)) for number in range(CALLERS)]
        try:
            report = _run_until_idle(injector, callers, seed=seed, seconds=seconds)
        finally:
            # It may have been started again.
            started.database = injector.database
        sizes = {f"{kind} at {one.domain}": count for one in receivers for kind, count in one.counts.items()}
        sizes |= {f"most connections of {one.domain}": one.most_open for one in receivers}
        violations = [*report.violations, *injector.find_violations()]
        return replace(report, sizes={**report.sizes, **_second_copies(ledger), **sizes}, violations=violations)


def run_expiry(logs: Path, *, seed: int, seconds: float) -> ChaosReport:
    """Send emails that expire soon while faults are injected, as in `run` with two transports."""
    with _running_injector(logs, seed, has_two_transports=True) as injector:
        scenario = injector.scenario
        callers = [
            Caller(scenario, random.Random(seed * 1000 + number), expiries=EXPIRIES) for number in range(CALLERS)
        ]
        report = _run_until_idle(injector, callers, seed=seed, seconds=seconds)
        found, sizes = _late_messages(scenario)
        return replace(report, sizes={**report.sizes, **sizes}, violations=[*report.violations, *found])


def _late_messages(scenario: Scenario) -> tuple[list[str], dict[str, int]]:
    """Return a message for each final dot after an expiry and for each recipient without one outcome, and counts."""
    with psycopg.connect(scenario.stack.database) as connection:
        rows = connection.execute(EXPIRED).fetchall()
    expiries = {wire_id(id_): (address, expires_at.timestamp()) for id_, address, expires_at, _, _ in rows}
    found = [f"{address} has {count} outcomes" for _, address, _, _, count in rows if count != 1]
    for message in scenario.ledger.messages:
        address, expires_at = expiries.get(message_id_of(message), ("", float("inf")))
        if message.at > expires_at + DOT_SECONDS:
            found.append(f"{address} received a message {message.at - expires_at:.1f} s after its expiry")
    reasons = Counter(reason for *_, reason, _ in rows)
    return found, {"emails with an expiry": len(rows), "expired": reasons["expired"]}


@contextmanager
def _running_injector(logs: Path, seed: int, **options: Any) -> Iterator[FaultInjector]:
    """Yield the injector of a scenario with a separate PostgreSQL, two workers and two beats."""
    with _database_directory() as (directory, disk):
        database = replace(postgres.start(directory, settings=SETTINGS), temporary_directory=directory)
        previous_url = os.environ.get("DATABASE_URL")
        os.environ["DATABASE_URL"] = database.url
        injector = None
        try:
            with running_scenario(logs, **options) as scenario:
                scenario.stack.start("worker-2", "beat", "beat-2")
                injector = FaultInjector(scenario, random.Random(seed), database, disk)
                yield injector
        finally:
            (injector.database if injector else database).stop()
            if previous_url is not None:
                os.environ["DATABASE_URL"] = previous_url


def _run_until_idle(injector: FaultInjector, callers: Sequence[Caller], *, seed: int, seconds: float) -> ChaosReport:
    """Run the callers and the readers of the feed beside the faults; audit when the queues are empty."""
    scenario = injector.scenario
    feed = FeedReader(scenario, random.Random(seed - 1))
    stream = StreamReader(scenario, random.Random(seed - 2))
    _run_threads(injector, [feed, stream, *callers], seconds)
    report = _finish(scenario, injector, callers, seed)
    found = [*feed.find_violations(), *stream.find_violations(), *feed.find_timeline_violations()]
    return replace(report, violations=[*report.violations, *found])


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


def _finish(scenario: Scenario, injector: FaultInjector, callers: Sequence[Caller], seed: int) -> ChaosReport:
    violations = [party.error for party in (injector, *callers) if party.error]
    scenario.receiver.statuses = [200]
    injector.recover_all()
    recipients = sum(len(email.addresses) for email in scenario.ledger.accepted)
    try:
        scenario.wait_until_idle(seconds=SETTLE_SECONDS)
    except AssertionError as error:
        violations.append(str(error))
    record_forwards(scenario)
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
    return {**by_transport, **_second_copies(scenario.ledger)}


def _second_copies(ledger: Ledger) -> dict[str, int]:
    copies = Counter((message.recipient, message.compressed) for message in ledger.messages)
    return {"second copies": sum(count - 1 for count in copies.values())}


def _count_reasons(scenario: Scenario) -> dict[str, int]:
    with psycopg.connect(scenario.stack.database) as connection:
        rows = connection.execute(
            "SELECT payload->>'reason', count(*) FROM emails_event WHERE payload->>'reason' IS NOT NULL GROUP BY 1"
        ).fetchall()
    return {f"events with {reason}": count for reason, count in rows}
