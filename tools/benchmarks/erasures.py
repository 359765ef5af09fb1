"""Benchmark of erasures: the time of ordinary sending beside 1,000 erasures, and alone.

    .venv/bin/python -m tools.benchmarks.erasures [--emails 200000] [--erasures 1000]

A workspace has emails to many people. Requests that send an email are made at a steady rate, alone, while the erasures
are processed, and alone again, since the load of the machine changes. Measures each request, and the time until its
email is delivered. Requires DATABASE_URL of a server on which databases may be created.
"""

import argparse
import statistics
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import psycopg

from tests.stack.stack import Stack, running_stack, wait_for
from tools.benchmarks.figures import record_figure
from tools.benchmarks.sizes import size

AT_MOST = 1.2
# Requests in a second, fewer than the service can take.
RATE = 20
PEOPLE = size(20_000, smoke=50)
FILL = """
WITH made AS (
    SELECT gen_random_uuid() AS email, gen_random_uuid() AS recipient, gen_random_uuid() AS content,
           now() - interval '10 days' - n * interval '1 second' AS at,
           'p' || n %% %(people)s || '@example.com' AS address
      FROM generate_series(1, %(emails)s) n
), content AS (
    INSERT INTO emails_content (id, html, text) SELECT content, repeat('<p>Hello</p>', 100), '' FROM made
), email AS (
    INSERT INTO emails_email (id, workspace_id, content_id, sender, from_domain, "to", cc, bcc, subject, search_text,
                              tags, headers, track_opens, track_clicks, created_at, status, retry_count, sent_at,
                              delivered_at, finished_at)
    SELECT email, %(workspace)s, content, 'hello@demo.example', 'demo.example', ARRAY[address], '{}', '{}',
           'Your receipt', address || E'\n' || 'your receipt', '{}', '{}', true, true, at, 'delivered', 0, at, at, at
      FROM made
), recipient AS (
    INSERT INTO emails_recipient (id, email_id, kind, position, address, state, attempts, sent_at, delivered_at)
    SELECT recipient, email, 'to', 0, address, 'delivered', 1, at, at FROM made
)
INSERT INTO emails_event (id, workspace_id, email_id, recipient_id, kind, payload, status, created_at)
SELECT gen_random_uuid(), %(workspace)s, email, recipient, kind, '{}', 'delivered', at
  FROM made CROSS JOIN unnest(ARRAY['queued', 'sent', 'delivered']) AS kind
"""
REQUEST = """
INSERT INTO privacy_erasure (id, workspace_id, email, keep_suppression, counts, waiting, passes, step)
SELECT gen_random_uuid(), %(workspace)s, 'p' || n || '@example.com', true, '{}', 0, 0, 0
  FROM generate_series(0, %(erasures)s - 1) n
"""
PENDING = "SELECT count(*) FROM privacy_erasure WHERE completed_at IS NULL"
DELIVERED = """
SELECT extract(epoch FROM r.delivered_at - e.created_at)
  FROM emails_email e JOIN emails_recipient r ON r.email_id = e.id
 WHERE e.subject = %s AND r.delivered_at IS NOT NULL
"""
UNFINISHED = "SELECT count(*) FROM emails_email WHERE subject = %s AND delivered_at IS NULL"


@dataclass(frozen=True)
class SendingTimes:
    """Seconds of each request that sends an email, and from its acceptance to its delivery."""

    requests: list[float]
    deliveries: list[float]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks.erasures")
    parser.add_argument("--emails", type=int, default=size(200_000, smoke=500))
    parser.add_argument("--erasures", type=int, default=size(1_000, smoke=10))
    parser.add_argument("--seconds", type=float, default=size(60.0, smoke=2.0), help="of each measurement")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder)) as stack:
        stack.start("web", WEB_CONCURRENCY="1")
        stack.start("inbox", "worker", "beat")
        fill(stack, emails=options.emails)
        measure(stack, "warm", seconds=2)
        before = measure(stack, "before", seconds=options.seconds)
        with psycopg.connect(stack.database, autocommit=True) as connection:
            connection.execute(REQUEST, {"workspace": workspace_of(connection), "erasures": options.erasures})
        started = time.monotonic()
        # They are begun within 15 seconds.
        wait_for(lambda: stack.query("SELECT 1 FROM privacy_erasure WHERE run IS NOT NULL LIMIT 1"), seconds=60,
                 what="the erasures begin")  # fmt: skip
        during = measure(stack, "during", seconds=options.seconds)
        left = stack.query(PENDING)[0][0]
        wait_for(lambda: stack.query(PENDING) == [(0,)], seconds=3600, what="the erasures are completed")
        print(f"{options.erasures:,} erasures in {time.monotonic() - started:.0f} s; {left:,} were left", flush=True)
        after = measure(stack, "after", seconds=options.seconds)
        report("request", during.requests, alone=[before.requests, after.requests])
        report("delivery", during.deliveries, alone=[before.deliveries, after.deliveries])
        assert stack.query("SELECT count(*) FROM emails_email WHERE 'p0@example.com' = ANY (\"to\")") == [(0,)]


def fill(stack: Stack, *, emails: int) -> None:
    with psycopg.connect(stack.database, autocommit=True) as connection:
        with suppress(psycopg.errors.InsufficientPrivilege):
            # A superuser may insert without checks of foreign keys.
            connection.execute("SET session_replication_role = replica")
        connection.execute(FILL, {"workspace": workspace_of(connection), "emails": emails, "people": PEOPLE})
        connection.execute("VACUUM ANALYZE")


def workspace_of(connection: "psycopg.Connection[tuple[object, ...]]") -> object:
    (workspace,) = connection.execute("SELECT id FROM workspaces_workspace").fetchone()  # type: ignore[misc]
    return workspace


def measure(stack: Stack, subject: str, *, seconds: float) -> SendingTimes:
    """Send at RATE, whatever the responses take; return the times once all emails are delivered."""
    requests: list[float] = []

    def send() -> None:
        reply = stack.send(to="ordinary@example.net", subject=subject)
        assert reply.status == 202
        requests.append(reply.seconds)

    threads = [Thread(target=send) for _ in range(round(seconds * RATE))]
    started = time.monotonic()
    for number, thread in enumerate(threads):
        time.sleep(max(0.0, started + number / RATE - time.monotonic()))
        thread.start()
    for thread in threads:
        thread.join()
    assert len(requests) == len(threads)
    wait_for(lambda: stack.query(UNFINISHED, subject) == [(0,)], seconds=120, what="the deliveries")
    return SendingTimes(requests, [float(value) for (value,) in stack.query(DELIVERED, subject)])


def report(what: str, during: list[float], *, alone: list[list[float]]) -> None:
    usual = statistics.mean(map(p99, alone))
    print(
        f"{what}: p50 {statistics.median(during) * 1000:.0f} ms, p99 {p99(during) * 1000:.0f} ms; alone p99"
        f" {' and '.join(f'{p99(values) * 1000:.0f}' for values in alone)} ms",
        flush=True,
    )
    record_figure(f"{what} beside erasures: p99 in relation to none", p99(during) / usual, at_most=AT_MOST)


def p99(values: list[float]) -> float:
    return sorted(values)[max(round(len(values) * 0.99) - 1, 0)]


if __name__ == "__main__":
    main()
