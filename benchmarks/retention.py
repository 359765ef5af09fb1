"""Emails sent per second, with and without a million expired ones being deleted beside it.

    .venv/bin/python -m benchmarks.retention [expired]

Needs DATABASE_URL of a server on which databases may be created; the data set takes some minutes and 2 GB.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg

from benchmarks.batch import TEMPLATE, batch
from benchmarks.figures import figure
from tests.flows.stack import PYTHON, REPOSITORY, Stack, running_stack, wait_for

CHUNK = 100_000
BATCHES = 8
WINDOW_SECONDS = 15.0
ROUNDS = 3
FILL = """
WITH made AS (
    SELECT gen_random_uuid() AS email, gen_random_uuid() AS recipient, gen_random_uuid() AS content,
           now() - interval '400 days' - n * interval '1 second' AS at FROM generate_series(%(start)s::int, %(stop)s) n
), content AS (
    INSERT INTO emails_content (id, html, text) SELECT content, repeat('<p>Hello</p>', 100), '' FROM made
), email AS (
    INSERT INTO emails_email (id, workspace_id, content_id, sender, from_domain, "to", cc, bcc, subject, search_text,
                              tags, headers, track_opens, track_clicks, created_at, status, retry_count, sent_at,
                              delivered_at, finished_at)
    SELECT email, %(workspace)s, content, 'hello@demo.example', 'demo.example', ARRAY['u@example.com'], '{}', '{}',
           'Your receipt', 'u@example.com' || E'\n' || 'your receipt', '{}', '{}', true, true, at, 'delivered', 0, at,
           at, at FROM made
), recipient AS (
    INSERT INTO emails_recipient (id, email_id, kind, position, address, state, attempts, sent_at, delivered_at)
    SELECT recipient, email, 'to', 0, 'u@example.com', 'delivered', 1, at, at FROM made
)
INSERT INTO emails_event (id, email_id, recipient_id, kind, payload, created_at)
SELECT gen_random_uuid(), email, recipient, kind, '{}', at
  FROM made CROSS JOIN unnest(ARRAY['queued', 'sent', 'delivered']) AS kind
"""
EXPIRE = ["manage.py", "shell", "--verbosity", "0", "-c", "from emails.tasks import expire; expire()"]


def main() -> None:
    expired = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder)) as stack:
        fill(stack, expired)
        stack.start("web", WEB_CONCURRENCY="1")
        stack.call("POST", "/templates", TEMPLATE)
        stack.start("inbox", "worker", "beat")
        sending(stack)
        ratios = [ratio(stack) for _ in range(ROUNDS)]
        print(f"sending keeps {statistics.median(ratios):.0%} of its rate", flush=True)
        figure("sending beside retention, of its rate alone", statistics.median(ratios) * 100, "%", at_least=80)
        finish(stack)


def ratio(stack: Stack) -> float:
    """Measure alone, then with retention, then alone again: what else the machine does changes meanwhile."""
    before = sending(stack)
    retention = expire(stack)
    beside = sending(stack)
    retention.terminate()
    retention.wait()
    alone = (before + sending(stack)) / 2
    print(f"alone {alone:.0f}/s, beside retention {beside:.0f}/s; {left(stack):,} expired left", flush=True)
    return beside / alone


def sending(stack: Stack) -> float:
    """Return how many emails a second leave, out of a backlog, for WINDOW_SECONDS or until it is empty."""
    wait_for(lambda: backlog(stack) == 0, seconds=300, what="the backlog is sent")
    for number in range(BATCHES):
        assert stack.call("POST", "/emails/batch", batch(number)).status == 202
    at, started = backlog(stack), time.monotonic()
    wait_for(lambda: time.monotonic() - started > WINDOW_SECONDS or backlog(stack) == 0, seconds=60, what="sending")
    return (at - backlog(stack)) / (time.monotonic() - started)


def expire(stack: Stack) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([PYTHON, *EXPIRE], cwd=REPOSITORY, env=stack.environment)
    at = left(stack)
    wait_for(lambda: left(stack) < at, seconds=30, what="retention deletes")
    return process


def finish(stack: Stack) -> None:
    at, started = left(stack), time.monotonic()
    expire(stack).wait()
    seconds = time.monotonic() - started
    print(f"the other {at:,} in {seconds:.0f} s, {at / seconds:.0f}/s, rests included; {left(stack)} are left")
    print(stack.manage("recount").strip())


def fill(stack: Stack, count: int) -> None:
    with psycopg.connect(stack.database, autocommit=True) as connection:
        (workspace,) = connection.execute("SELECT id FROM workspaces_workspace").fetchone()  # type: ignore[misc]
        connection.execute("SET session_replication_role = replica")
        for start in range(1, count + 1, CHUNK):
            values = {"workspace": workspace, "start": start, "stop": min(start + CHUNK - 1, count)}
            connection.execute(FILL, values)
        connection.execute("VACUUM ANALYZE")
    stack.manage("recount", "--repair")


def backlog(stack: Stack) -> int:
    """Count what is ready or being sent; what a busy machine deferred waits for a minute and more."""
    return int(stack.query("SELECT count(*) FROM emails_pending WHERE stage IN (1, 2)")[0][0])


def left(stack: Stack) -> int:
    old = "SELECT count(*) FROM emails_email WHERE created_at < now() - interval '365 days'"
    return int(stack.query(old)[0][0])


if __name__ == "__main__":
    main()
