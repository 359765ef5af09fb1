"""What a backlog of a million ready recipients of one workspace costs: a claim, a worker's memory, everybody else.

    .venv/bin/python -m benchmarks.backlog [recipients]

A process of its own claims, as a worker would, and gives back: first alone, then while one worker drains the backlog
into a sink as fast as the machine lets it, and another workspace sends an email each second over HTTP. What the worker
takes of the machine is told apart from what the backlog costs: the same was done before with a thirtieth of it. Needs
DATABASE_URL of a server on which databases may be created, and Debian's postfix package; the data set takes some
minutes and 2 GB.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import psycopg

from benchmarks.figures import figure
from benchmarks.sinks import smtp_sink
from tests.stack.stack import PYTHON, REPOSITORY, Stack, running_stack, wait_for

SECONDS = 60
WARM_SECONDS = 10
CLAIMING_SECONDS = 30
SMALL = 30_000
SETTLED_SECONDS = 30
CHUNK = 100_000
# Ids as the service makes them (lib.ids), of a thousand emails a second.
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
SELECT recipient, %(workspace)s, 'example.com', 1, now(), now(), 0, 0 FROM made
"""
CONTENT = """
INSERT INTO emails_content (id, html, text) VALUES (gen_random_uuid(), repeat('<p>Hello</p>', 100), '') RETURNING id
"""
# The first ten of a process connect and load what they need.
CLAIMS = """
import itertools, time
from uuid import UUID
from emails.sending.queue import claim, promote, put_back
for number in itertools.count():
    started = time.perf_counter()
    claims = claim(32, after=UUID(int=0), cap=25)
    if number >= 10:
        print(time.perf_counter() - started, flush=True)
    put_back(claims, seconds=0)
    promote()
    time.sleep(0.1)
"""
DELAYS = """
SELECT extract(epoch FROM r.sent_at - e.created_at)::float
  FROM emails_email e JOIN emails_recipient r ON r.email_id = e.id
 WHERE e.from_domain = 'other.example' AND r.sent_at IS NOT NULL
"""


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder, smtp_sink() as port:
        transport = {"DELIVERY_TRANSPORT": "smtp", "SMTP_URL": f"smtp://127.0.0.1:{port}?tls=none"}
        with running_stack(Path(folder), **transport) as stack:
            fill(stack, SMALL)
            start_worker(stack)
            claim_for_a_while(stack, f"a claim of 32 beside a worker, {SMALL:,} waiting")
            stack.kill("worker")
            fill(stack, count)
            stack.start("web", WEB_CONCURRENCY="2")
            other = other_workspace(stack)
            settle(stack)
            claim_for_a_while(stack, "a claim of 32, a million waiting", at_most=5)
            start_worker(stack)
            measure(stack, other)


def start_worker(stack: Stack) -> None:
    count = ready(stack)
    stack.start("worker")
    wait_for(lambda: ready(stack) < count, seconds=60, what="the worker has begun")
    time.sleep(WARM_SECONDS)


def settle(stack: Stack) -> None:
    """Wait until PostgreSQL has tidied up after a million rows in a minute, which no client sends."""
    quiet = 0
    for _ in range(SETTLED_SECONDS * 10):
        ((vacuums,),) = stack.query("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'")
        quiet = 0 if vacuums else quiet + 1
        if quiet == SETTLED_SECONDS:
            return
        time.sleep(1)


def claim_for_a_while(stack: Stack, name: str, *, at_most: float | None = None) -> None:
    claims = claiming(stack)
    time.sleep(CLAIMING_SECONDS)
    report(name, ended(claims), at_most=at_most)


def measure(stack: Stack, other: Stack) -> None:
    at, memory_at, started = ready(stack), memory(stack), time.monotonic()
    claims = claiming(stack)
    for number in range(SECONDS):
        reply = other.send(**{"from": "hello@other.example"}, to=f"reader{number}@example.com")
        assert reply.status == 202, reply.body
        time.sleep(max(0.0, started + number + 1 - time.monotonic()))
    seconds = ended(claims)
    rate = (at - ready(stack)) / (time.monotonic() - started)
    print(f"{at:,} ready recipients, of which a worker sends {rate:.0f}/s", flush=True)
    figure("sent by one worker, with a million waiting", rate, "/s")
    report("a claim of 32 beside a worker, a million waiting", seconds)
    wait_for(lambda: len(delays(stack)) == SECONDS, seconds=60, what="the other workspace's emails are sent")
    report("another workspace's email is sent after", delays(stack), at_most=1000)
    figure("its memory at first", memory_at, "MB")
    figure("its memory in the end", memory(stack), "MB", at_most=memory_at * 1.1)


def report(name: str, seconds: list[float], *, at_most: float | None = None) -> None:
    """Print milliseconds; at_most is the aim of the p99."""
    ordered = sorted(1000 * one for one in seconds)
    p99 = ordered[int(len(ordered) * 0.99)]
    print(f"{name}: p50 {statistics.median(ordered):.1f}, p99 {p99:.1f} ms ({len(ordered)} times)", flush=True)
    figure(f"{name}: p99", p99, "ms", at_most=at_most)


def fill(stack: Stack, count: int) -> None:
    with psycopg.connect(stack.database, autocommit=True) as connection:
        (workspace,) = connection.execute("SELECT id FROM workspaces_workspace").fetchone()  # type: ignore[misc]
        (content,) = connection.execute(CONTENT).fetchone()  # type: ignore[misc]
        connection.execute("SET session_replication_role = replica")
        for start in range(1, count + 1, CHUNK):
            stop = min(start + CHUNK - 1, count)
            connection.execute(FILL, {"workspace": workspace, "content": content, "start": start, "stop": stop})
        connection.execute("VACUUM ANALYZE")
        # The pages of a queue that grew for days are on the disk by now.
        connection.execute("CHECKPOINT")
    os.sync()
    stack.manage("reconcile", "--repair")


def other_workspace(stack: Stack) -> Stack:
    """Return the same stack as another workspace calls it."""
    account = ["--name", "Other", "--email", "owner@other.example", "--password", "a long enough one", "--plan", "pro"]
    workspace = json.loads(stack.manage("create_workspace", *account))["workspaceId"]
    scope = ["--workspace", workspace, "--name", "k", "--scope", "full_access"]
    other = replace(stack, key=json.loads(stack.manage("create_api_key", *scope))["key"])
    assert other.call("POST", "/domains", {"name": "other.example"}).status == 201
    return other


def claiming(stack: Stack) -> "subprocess.Popen[str]":
    """Start claiming ten times a second, beside the worker; the seconds of each are the lines of its output."""
    command = [PYTHON, "manage.py", "shell", "--verbosity", "0", "-c", CLAIMS]
    return subprocess.Popen(command, cwd=REPOSITORY, env=stack.environment, stdout=subprocess.PIPE, text=True)


def ended(claims: "subprocess.Popen[str]") -> list[float]:
    """Stop claiming; return the seconds of each claim."""
    claims.terminate()
    return [float(line) for line in claims.communicate()[0].split()]


def ready(stack: Stack) -> int:
    return int(stack.query("SELECT count(*) FROM emails_pending WHERE stage = 1")[0][0])


def delays(stack: Stack) -> list[float]:
    """Return the seconds between the acceptance of each email of the other workspace and the end of its hand-over."""
    return [seconds for (seconds,) in stack.query(DELAYS)]


def memory(stack: Stack) -> int:
    """Return the worker's resident memory, in MB."""
    status = Path(f"/proc/{stack.processes['worker'].pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024


if __name__ == "__main__":
    main()
