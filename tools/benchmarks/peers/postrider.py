"""Postrider with one web process and one worker process per core, which sends through a sink."""

import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count as numbers_from
from pathlib import Path

import psycopg
import redis

from config.heartbeats import PREFIX
from tests.stack.stack import Stack, running_stack, wait_for
from tools.benchmarks.accept import wrk
from tools.benchmarks.footprint import read_usage, total
from tools.benchmarks.peers.messages import HTML, SENDER, SUBJECT, TEXT
from tools.benchmarks.peers.received import ReceivedMail
from tools.benchmarks.sizes import size

# Limit of each wait: the machine may be busy with other programs.
LIMIT_SECONDS = 300
# On such a machine a request waits, as it does for a mail server, instead of being refused.
PATIENT = {"WEB_MAX_WAIT_MS": "60000"}
BATCH_SIZE = size(500, smoke=50)
BATCH_CALLERS = 4
TEMPLATE = {"name": "Receipt", "subject": SUBJECT, "htmlContent": HTML, "textContent": TEXT, "alias": "receipt"}
DELAYS = """
SELECT extract(epoch FROM r.delivered_at - e.created_at)::float
  FROM emails_email e JOIN emails_recipient r ON r.email_id = e.id WHERE r.delivered_at IS NOT NULL
"""
# States in /proc/net/tcp in which a connection may still have a request: ESTABLISHED and CLOSE_WAIT.
OPEN_STATES = {"01", "08"}
user_numbers = numbers_from()


@dataclass(frozen=True)
class PostriderRun:
    """A running Postrider. rates are emails per second, from the first request or claim to the last message."""

    stack: Stack
    received: ReceivedMail
    workers: int

    def measure_single(self, *, seconds: int) -> float:
        """Send single emails over HTTP for a time with 32 callers, and wait until all are delivered."""
        before, started = self._accepted(), time.perf_counter()
        wrk(self.stack, write_wrk_script(self.stack), seconds=seconds)
        # A request whose response wrk did not wait for is accepted, too.
        wait_for(self._has_answered, seconds=LIMIT_SECONDS, what="web has answered all requests")
        return self._finish(self._accepted() - before, started)

    def measure_batches(self, count: int) -> float:
        """Send batches of 500 from a template over HTTP, and wait until all emails are delivered."""
        started = time.perf_counter()
        self._send_batches(count)
        return self._finish(count, started)

    def measure_queue(self, count: int) -> tuple[float, float]:
        """Deliver a filled queue; return the rate and the processor seconds of the workers per email."""
        with psycopg.connect(self.stack.database, autocommit=True) as connection:
            # `manage.py hold` and `release` would add an event to each email that waited meanwhile.
            connection.execute("INSERT INTO emails_hold (id) VALUES (1)")
            self._send_batches(count)
            assert self._queued() == count
            used = self._worker_seconds()
            connection.execute("DELETE FROM emails_hold")
        # The workers' timers find the queue within two seconds, which are not measured.
        wait_for(lambda: self.received.count() > 0, seconds=LIMIT_SECONDS, what="the first message arrives")
        started = time.perf_counter()
        rate = self._finish(count, started)
        return rate, (self._worker_seconds() - used) / count

    def _finish(self, count: int, started: float) -> float:
        self.received.wait_until(count)
        seconds = time.perf_counter() - started
        wait_for(self._is_queue_empty, seconds=LIMIT_SECONDS, what="everything is recorded")
        unsent = self.stack.query("SELECT count(*) FROM emails_recipient WHERE state NOT IN ('sent', 'delivered')")
        assert unsent == [(0,)], unsent
        self.received.take(count)
        return count / seconds

    def _send_batches(self, count: int) -> None:
        with ThreadPoolExecutor(BATCH_CALLERS) as pool:
            sizes = [min(BATCH_SIZE, count - start) for start in range(0, count, BATCH_SIZE)]
            assert set(pool.map(self._send_batch, sizes)) == {202}

    def _send_batch(self, size: int) -> int:
        users = [next(user_numbers) for _ in range(size)]
        recipients = [{"to": f"user{user}@example.com", "templateData": {"name": f"User {user}"}} for user in users]
        batch = {"from": SENDER, "templateId": "receipt", "recipients": recipients}
        return self.stack.call("POST", "/emails/batch", batch).status

    def _accepted(self) -> int:
        return int(self.stack.query("SELECT count(*) FROM emails_email")[0][0])

    def _queued(self) -> int:
        return int(self.stack.query("SELECT count(*) FROM emails_pending")[0][0])

    def _is_queue_empty(self) -> bool:
        return self._queued() == 0

    def _has_answered(self) -> bool:
        """Return whether web has closed all connections, which it does after their last response."""
        port = f":{int(self.stack.environment['PORT']):04X}"
        rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines())
        return not any(row[1].endswith(port) and row[3] in OPEN_STATES for row in rows)

    def _worker_seconds(self) -> float:
        names = (f"worker-{number}" for number in range(self.workers))
        return total(read_usage([self.stack.processes[name].pid for name in names]))


@contextmanager
def running_postrider(received_in: Path, *, sink_port: int) -> Iterator[PostriderRun]:
    """Start all processes with a template, and yield them once one email was delivered by each route."""
    transport = {"DELIVERY_TRANSPORT": "smtp", "SMTP_URL": f"smtp://127.0.0.1:{sink_port}?tls=none"}
    workers = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as logs, running_stack(Path(logs), **transport, **PATIENT) as stack:
        names = [f"worker-{number}" for number in range(workers)]
        stack.start("web", *names, WEB_CONCURRENCY="0", DELIVERY_CONNECTIONS="200")
        wait_for(lambda: heartbeats(stack) == workers, seconds=LIMIT_SECONDS, what="the workers are running")
        assert stack.call("POST", "/templates", TEMPLATE).status == 201
        run = PostriderRun(stack, ReceivedMail(received_in, public_keys_of(stack)), workers)
        run.measure_batches(BATCH_SIZE)
        yield run


@contextmanager
def running_with_inbox() -> Iterator[Stack]:
    """Yield the processes of `bin/run`, which deliver into the built-in inbox, after a first delivery."""
    with tempfile.TemporaryDirectory() as logs, running_stack(Path(logs), WEB_CONCURRENCY="0", **PATIENT) as stack:
        stack.start("service")
        stack.send()
        wait_for(stack.all_delivered, seconds=LIMIT_SECONDS, what="the first email is delivered")
        yield stack


def measure_delays(stack: Stack, *, count: int, pause_seconds: float) -> list[float]:
    """Send emails one after another; return all seconds from acceptance to the recorded delivery so far."""
    for number in range(count):
        assert stack.send(to=f"reader{number}@example.com").status == 202
        time.sleep(pause_seconds)
    wait_for(stack.all_delivered, seconds=LIMIT_SECONDS, what="everything is delivered")
    return [seconds for (seconds,) in stack.query(f"{DELAYS} ORDER BY e.created_at OFFSET 1")]


def percentile(values: list[float], percent: float) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[round(percent) - 1]


def write_wrk_script(stack: Stack) -> Path:
    """Write the wrk script, which sends each email to another address."""
    path = stack.logs / "single.lua"
    body = {"from": SENDER, "to": "u@example.com", "subject": "Your receipt", "html": HTML, "text": TEXT}
    before, after = json.dumps(body).split("u@example.com")
    headers = f'{{["Authorization"] = "Bearer {stack.key}", ["Content-Type"] = "application/json"}}'
    path.write_text(
        f"n, headers, before, after = 0, {headers}, [==[{before}]==], [==[{after}]==]\n"
        "function request()\n  n = n + 1\n"
        '  return wrk.format("POST", nil, headers, before .. "u" .. n .. "@example.com" .. after)\nend\n'
    )
    return path


def heartbeats(stack: Stack) -> int:
    """Return the number of worker processes with a heartbeat."""
    return len(list(redis.Redis.from_url(stack.environment["REDIS_URL"]).scan_iter(f"{PREFIX}*")))


def public_keys_of(stack: Stack) -> dict[str, str]:
    return dict(stack.query("SELECT selector, public_key FROM domains_dkimkey"))
