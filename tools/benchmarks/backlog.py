"""Benchmark of a backlog of a million ready recipients: claim time, worker memory, delay of other workspaces.

    .venv/bin/python -m tools.benchmarks.backlog [recipients]

A separate process claims queue entries like a worker and puts them back: first alone, then while one worker sends the
backlog to a sink at full speed and another workspace sends an email each second over HTTP. A run with 30,000 recipients
shows how much of the claim time is caused by the worker. Requires DATABASE_URL of a server on which databases may be
created, and Debian's postfix package. Creating the data takes minutes and 2 GB.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psycopg

from core.lib.worker.stages import Stage
from tests.stack.entries import EMAILS, count_entries
from tests.stack.stack import PYTHON, REPOSITORY, Stack, running_stack, wait_for
from tools.benchmarks.figures import record_figure
from tools.benchmarks.sinks import smtp_sink
from tools.benchmarks.sizes import size

MEASURED_SECONDS = size(60, smoke=2)
WARM_SECONDS = size(10, smoke=1)
CLAIMING_SECONDS = size(30, smoke=1)
SMALL_BACKLOG = size(30_000, smoke=1_000)
QUIET_SECONDS = size(30, smoke=1)
CHUNK = 100_000
# Ids like those of core.lib.ids, for a thousand emails per second.
FILL = """
WITH made AS (
    SELECT (second || substr(md5(random()::text), 1, 24))::uuid AS email,
           (second || substr(md5(random()::text), 1, 24))::uuid AS recipient, 'user' || n || '@example.com' AS address
      FROM (SELECT n, to_hex(extract(epoch FROM now())::bigint + n / 1000) AS second
              FROM generate_series(%(start)s::int, %(stop)s) n) counted
), email AS (
    INSERT INTO emails_email (id, workspace_id, content_id, sender, from_domain, "to", cc, bcc, subject, search_text,
                              tags, headers, track_opens, track_clicks, created_at, status, retry_count)
    SELECT email, %(workspace)s, %(content)s, 'hello@demo.example', 'demo.example', ARRAY[address], '{}', '{}',
           'Your receipt', address || E'\\n' || 'your receipt', '{}', '{}', true, true, now(), 'queued', 0 FROM made
), recipient AS (
    INSERT INTO emails_recipient (id, email_id, kind, position, address, state, attempts)
    SELECT recipient, email, 'to', 0, address, 'queued', 0 FROM made
)
INSERT INTO emails_pending (recipient_id, workspace_id, domain, stage, due_at, since, fence, attempts)
SELECT recipient, %(workspace)s, 'example.com', %(stage)s, now(), now(), 0, 0 FROM made
"""
CONTENT = """
INSERT INTO emails_content (id, html, text) VALUES (gen_random_uuid(), repeat('<p>Hello</p>', 100), '') RETURNING id
"""
# The first ten claims of a process include connecting and loading.
CLAIMS = """
import itertools, time
from emails.sending.queue import WorkspaceShares, promote, release
from core.lib.worker.lease_queue import Cursor
for number in itertools.count():
    started = time.perf_counter()
    claims = Cursor().claim(32, WorkspaceShares(cap=25, in_flight={}))
    if number >= 10:
        print(time.perf_counter() - started, flush=True)
    release(claims, seconds=0)
    promote()
    time.sleep(0.1)
"""
DELAYS = """
SELECT extract(epoch FROM r.sent_at - e.created_at)::float
  FROM emails_email e JOIN emails_recipient r ON r.email_id = e.id
 WHERE e.from_domain = 'other.example' AND r.sent_at IS NOT NULL
"""


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else size(1_000_000, smoke=3_000)
    with tempfile.TemporaryDirectory() as folder, smtp_sink() as port:
        transport = {"DELIVERY_TRANSPORT": "smtp", "SMTP_URL": f"smtp://127.0.0.1:{port}?tls=none"}
        with running_stack(Path(folder), **transport) as stack:
            fill(stack, SMALL_BACKLOG)
            start_worker(stack)
            measure_claims(stack, f"claim of 32 entries with a running worker, {SMALL_BACKLOG:,} ready")
            stack.kill("worker")
            fill(stack, count)
            stack.start("web", WEB_CONCURRENCY="2")
            other = create_other_workspace(stack)
            wait_for_vacuum(stack)
            measure_claims(stack, "claim of 32 entries, a million ready", at_most=5)
            start_worker(stack)
            measure(stack, other)


def start_worker(stack: Stack) -> None:
    count = ready_count(stack)
    stack.start("worker")
    wait_for(lambda: ready_count(stack) < count, seconds=60, what="the worker is sending")
    time.sleep(WARM_SECONDS)


def wait_for_vacuum(stack: Stack) -> None:
    """Wait until autovacuum has finished after the insertion of a million rows in a minute."""
    quiet_seconds = 0
    for _ in range(QUIET_SECONDS * 10):
        ((vacuums,),) = stack.query("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'")
        quiet_seconds = 0 if vacuums else quiet_seconds + 1
        if quiet_seconds == QUIET_SECONDS:
            return
        time.sleep(1)


def measure_claims(stack: Stack, name: str, *, at_most: float | None = None) -> None:
    claims = start_claiming(stack)
    time.sleep(CLAIMING_SECONDS)
    report(name, stop_claiming(claims), at_most=at_most)


def measure(stack: Stack, other: Stack) -> None:
    count, memory_mb, started = ready_count(stack), worker_memory_mb(stack), time.monotonic()
    claims = start_claiming(stack)
    for number in range(MEASURED_SECONDS):
        reply = other.send(**{"from": "hello@other.example"}, to=f"reader{number}@example.com")
        assert reply.status == 202, reply.body
        time.sleep(max(0.0, started + number + 1 - time.monotonic()))
    seconds = stop_claiming(claims)
    rate = (count - ready_count(stack)) / (time.monotonic() - started)
    print(f"{count:,} ready recipients, a worker sends {rate:.0f}/s", flush=True)
    record_figure("emails sent by one worker, a million ready", rate, "/s")
    report("claim of 32 entries with a running worker, a million ready", seconds)
    wait_for(
        lambda: len(delivery_delays(stack)) == MEASURED_SECONDS,
        seconds=60,
        what="the other workspace's emails are sent",
    )
    report("delay of another workspace's emails", delivery_delays(stack), at_most=1000)
    record_figure("worker memory at the start", memory_mb, "MB")
    record_figure("worker memory at the end", worker_memory_mb(stack), "MB", at_most=memory_mb * 1.1)


def report(name: str, seconds: list[float], *, at_most: float | None = None) -> None:
    """Print milliseconds; at_most is the aim of the p99."""
    ordered = sorted(1000 * one for one in seconds)
    p99 = ordered[int(len(ordered) * 0.99)]
    print(f"{name}: p50 {statistics.median(ordered):.1f}, p99 {p99:.1f} ms ({len(ordered)} times)", flush=True)
    record_figure(f"{name}: p99", p99, "ms", at_most=at_most)


def fill(stack: Stack, count: int) -> None:
    with psycopg.connect(stack.database, autocommit=True) as connection:
        (workspace,) = connection.execute("SELECT id FROM workspaces_workspace").fetchone()  # type: ignore[misc]
        (content,) = connection.execute(CONTENT).fetchone()  # type: ignore[misc]
        with suppress(psycopg.errors.InsufficientPrivilege):
            # A superuser may insert without checks of foreign keys, which takes half of the time.
            connection.execute("SET session_replication_role = replica")
        for start in range(1, count + 1, CHUNK):
            stop = min(start + CHUNK - 1, count)
            values = {"workspace": workspace, "content": content, "stage": Stage.READY, "start": start, "stop": stop}
            connection.execute(FILL, values)
        connection.execute("VACUUM ANALYZE")
        with suppress(psycopg.errors.InsufficientPrivilege):
            # A queue that grew for days is already on disk.
            connection.execute("CHECKPOINT")
    os.sync()
    stack.manage("reconcile", "--repair")


def create_other_workspace(stack: Stack) -> Stack:
    """Create another workspace; return the stack with its API key."""
    account = ["--name", "Other", "--email", "owner@other.example", "--password", "a long enough one", "--plan", "pro"]
    workspace = json.loads(stack.manage("create_workspace", *account))["workspaceId"]
    scope = ["--workspace", workspace, "--name", "k", "--scope", "full_access"]
    other = replace(stack, key=json.loads(stack.manage("create_api_key", *scope))["key"])
    assert other.call("POST", "/domains", {"name": "other.example"}).status == 201
    return other


def start_claiming(stack: Stack) -> "subprocess.Popen[str]":
    """Start a process that claims ten times per second and prints the seconds of each claim; return after the first."""
    command = [PYTHON, "manage.py", "shell", "--verbosity", "0", "-c", CLAIMS]
    claims = subprocess.Popen(command, cwd=REPOSITORY, env=stack.environment, stdout=subprocess.PIPE, text=True)
    assert claims.stdout
    assert claims.stdout.readline(), "the process that claims has ended"
    return claims


def stop_claiming(claims: "subprocess.Popen[str]") -> list[float]:
    """Stop the process after its next claim; return the seconds of each claim."""
    assert claims.stdout
    line = claims.stdout.readline()
    assert line, "the process that claims has ended"
    claims.terminate()
    return [float(text) for text in (line + claims.communicate()[0]).split()]


def ready_count(stack: Stack) -> int:
    return count_entries(stack, EMAILS, Stage.READY)


def delivery_delays(stack: Stack) -> list[float]:
    """Return the seconds from acceptance to the end of delivery for each email of the other workspace."""
    return [seconds for (seconds,) in stack.query(DELAYS)]


def worker_memory_mb(stack: Stack) -> int:
    """Return the resident memory of the worker."""
    status = Path(f"/proc/{stack.processes['worker'].pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024


if __name__ == "__main__":
    main()
