"""Benchmark of analytics on three million emails and queue statistics on a million entries, compared with a scan.

    .venv/bin/python -m tools.benchmarks.analytics [emails]

Requires DATABASE_URL of a server on which databases may be created. Creating the data takes minutes and 3 GB.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from core.counters.latency import Latency, bucket_of, counter_name, histogram_id
from core.delivery.receivers_file import built_in_receivers
from core.lib.ids import from_uuid, to_uuid
from core.lib.worker.stages import Stage
from tests.stack.stack import Stack, running_stack
from tools.benchmarks.figures import record_figure
from tools.benchmarks.lists import COUNT_DAYS
from tools.benchmarks.sizes import size

DAYS = 90
BACKLOG = size(1_000_000, smoke=1_000)
OTHERS_DELTAS = size(1_000_000, smoke=1_000)
CHUNK = 250_000
FILL = """
INSERT INTO emails_email (id, workspace_id, sender, from_domain, "to", cc, bcc, subject, search_text, tags, headers,
                          track_opens, track_clicks, created_at, status, retry_count, delivered_at, bounced_at,
                          opened_at, clicked_at)
SELECT gen_random_uuid(), %(workspace)s, 'hello@demo.example', 'demo.example', ARRAY['u@example.com'], '{}', '{}', 's',
       's', '{}', '{}', true, true, created_at, status, 0,
       CASE WHEN status IN ('delivered', 'opened', 'clicked') THEN created_at END,
       CASE WHEN status = 'bounced' THEN created_at END,
       CASE WHEN status IN ('opened', 'clicked') THEN created_at END, CASE WHEN status = 'clicked' THEN created_at END
  FROM (SELECT now() - (%(count)s - n) * %(days)s * interval '1 day' / %(count)s AS created_at,
               CASE WHEN n %% 100 < 60 THEN 'delivered' WHEN n %% 100 < 85 THEN 'opened'
                    WHEN n %% 100 < 97 THEN 'clicked' WHEN n %% 100 < 99 THEN 'bounced' ELSE 'failed' END AS status
          FROM generate_series(%(start)s::bigint, %(stop)s::bigint) n) made
"""
COUNT = f"""
INSERT INTO analytics_tally (workspace_id, hour, key, count)
SELECT workspace_id, date_trunc('hour', created_at, 'UTC'), key, count(*)
  FROM emails_email CROSS JOIN LATERAL (VALUES ('status.' || status, true),
       ('reached.delivered', delivered_at IS NOT NULL), ('reached.bounced', bounced_at IS NOT NULL),
       ('reached.opened', opened_at IS NOT NULL), ('reached.clicked', clicked_at IS NOT NULL)) AS status (key, is_set)
 WHERE is_set GROUP BY 1, 2, 3;
{COUNT_DAYS.strip()};
INSERT INTO analytics_tallydelta (workspace_id, hour, key, change)
SELECT gen_random_uuid(), now(), 'status.sent', 1 FROM generate_series(1, %(others)s);
"""  # noqa: S608 - constants
# Without recipients, which no measured query reads; they would double the data.
FOREIGN_KEYS = """
SELECT format('ALTER TABLE emails_pending DROP CONSTRAINT %I', conname) FROM pg_constraint
 WHERE conrelid = 'emails_pending'::regclass AND contype = 'f'
"""
QUEUE = """
INSERT INTO emails_pending (recipient_id, workspace_id, domain, stage, due_at, since, fence, attempts)
SELECT gen_random_uuid(), %(workspace)s, 'example.com', %(stage)s, now() + %(ahead)s, now() + %(ahead)s, 0, 0
  FROM generate_series(1, %(backlog)s);
INSERT INTO analytics_tallydelta (workspace_id, hour, key, change)
SELECT %(workspace)s, '1970-01-01 00:00:00+00'::timestamptz, key, %(backlog)s FROM unnest(%(keys)s::text[]) AS key;
"""
# A month of ten million emails at all receivers of the table, with times from 0.2 s to 10 min.
LATENCY_DAYS = 30
LATENCY_KEYS = [counter_name(latency, bucket) for latency in Latency for bucket in range(4, bucket_of(600))]
COUNT_LATENCIES = """
INSERT INTO analytics_tally (workspace_id, hour, key, count)
SELECT histogram, hour, key, %(emails)s
  FROM unnest(%(histograms)s::uuid[]) AS histogram, unnest(%(keys)s::text[]) AS key,
       generate_series(date_trunc('hour', now(), 'UTC') - %(days)s * interval '1 day', now(), '1 hour') AS hour
"""
# The queries of a service without counters, on the same table with the same indexes: one row, or one per day.
COLUMNS = """
       count(*) FILTER (WHERE status NOT IN ('cancelled', 'scheduled')), count(delivered_at), count(bounced_at),
       count(opened_at), count(clicked_at)
  FROM emails_email WHERE workspace_id = %s AND created_at >= (now() AT TIME ZONE 'UTC')::date - %s
"""
SCAN = f"SELECT {COLUMNS}"
SCAN_BY_DAY = f"SELECT (created_at AT TIME ZONE 'UTC')::date AS day, {COLUMNS} GROUP BY day ORDER BY day"


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else size(3_000_000, smoke=2_000)
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder)) as stack:
        fill(stack, count)
        stack.start("web", WEB_CONCURRENCY="2")
        measure_analytics(stack)
        for name, stage, ahead, keys in (
            ("ready", Stage.READY, "0 s", ["recipients.accepted"]),
            ("scheduled", Stage.SCHEDULED, "1 hour", ["recipients.accepted", "recipients.delayed"]),
        ):
            enqueue(stack, stage=stage, ahead=ahead, keys=keys)
            report(f"queue, 1 M {name}, first", measure(lambda: read(stack, "/queue/stats"), 1, warm=0))
            report(f"queue, 1 M {name}, cached", measure(lambda: read(stack, "/queue/stats"), 200))
            report(f"queue, 1 M {name}, uncached", measure(lambda: read_uncached(stack), 10))
        print(stack.call("GET", "/queue/stats").body)


def measure_analytics(stack: Stack) -> None:
    since = time.strftime("%Y-%m-%d", time.gmtime(time.time() - DAYS * 86_400))
    report("analytics, all", measure(lambda: read(stack, "/analytics"), 500))
    compare(stack, f"analytics, {DAYS} days", f"/analytics?from={since}", SCAN)
    for by in ("stream", "receiver"):
        path = f"/analytics/latency?by={by}"
        milliseconds = report(f"latency by {by}", measure(partial(read, stack, path), 500))
        record_figure(f"latency of {LATENCY_DAYS} days by {by}: p50", milliseconds, "ms", at_most=50)
    compare(stack, f"daily, {DAYS} days", f"/analytics/daily?days={DAYS}", SCAN_BY_DAY)


def count_latencies(connection: psycopg.Connection, workspace: Any) -> None:
    workspace_id = from_uuid(workspace, prefix="ws_")
    receivers = ["", *(receiver.key for receiver in built_in_receivers().receivers)]
    histograms = [to_uuid(histogram_id(workspace_id, receiver=one), prefix="ws_") for one in receivers]
    hours, keys = 24 * LATENCY_DAYS, LATENCY_KEYS
    emails = 10_000_000 // (hours * len(keys) * len(receivers))
    values = {"histograms": histograms, "keys": keys, "days": size(LATENCY_DAYS, smoke=1), "emails": emails}
    connection.execute(COUNT_LATENCIES, values)


def compare(stack: Stack, name: str, path: str, sql: str) -> None:
    """Measure requests, and an SQL statement that counts the same by a scan."""
    fast = report(name, measure(lambda: read(stack, path), 500))
    with psycopg.connect(stack.database, autocommit=True) as connection:
        (workspace,) = connection.execute("SELECT id FROM workspaces_workspace").fetchone()  # type: ignore[misc]
        slow = report("  a scan", measure(lambda: connection.execute(sql, [workspace, DAYS]).fetchall(), 20))
    print(f"  the scan takes {slow / fast:.0f} times as long")


def fill(stack: Stack, count: int) -> None:
    with psycopg.connect(stack.database, autocommit=True) as connection:
        (workspace,) = connection.execute("SELECT id FROM workspaces_workspace").fetchone()  # type: ignore[misc]
        connection.execute("UPDATE workspaces_workspace SET created_at = now() - interval '1000 days'")
        for start in range(1, count + 1, CHUNK):
            stop = min(start + CHUNK - 1, count)
            values = {"workspace": workspace, "start": start, "stop": stop, "count": count, "days": DAYS}
            connection.execute(FILL, values)
        count_latencies(connection, workspace)
        for statement in COUNT.split(";\n")[:-1]:
            connection.execute(statement, {"others": OTHERS_DELTAS} if "others" in statement else None)
        connection.execute("VACUUM ANALYZE")


def enqueue(stack: Stack, *, stage: Stage, ahead: str, keys: list[str]) -> None:
    with psycopg.connect(stack.database, autocommit=True) as connection:
        (workspace,) = connection.execute("SELECT id FROM workspaces_workspace").fetchone()  # type: ignore[misc]
        values = {"workspace": workspace, "stage": stage, "ahead": ahead, "keys": keys, "backlog": BACKLOG}
        for (drop,) in connection.execute(FOREIGN_KEYS).fetchall():
            connection.execute(drop)
        for statement in QUEUE.split(";\n")[:-1]:
            connection.execute(statement, values)
        connection.execute("ANALYZE emails_pending")


def read(stack: Stack, path: str) -> None:
    reply = stack.call("GET", path)
    assert reply.status == 200, reply.body


def read_uncached(stack: Stack) -> None:
    """Request the statistics after every process's cache has expired."""
    time.sleep(1.1)
    read(stack, "/queue/stats")


def measure(request: Callable[[], object], rounds: int, *, warm: int = 2) -> list[float]:
    seconds = []
    for number in range(warm + size(rounds, smoke=1)):
        started = time.perf_counter()
        request()
        if number >= warm:
            seconds.append(time.perf_counter() - started)
    return seconds


def report(name: str, seconds: list[float]) -> float:
    """Print and return the median in milliseconds, without the pause of 1.1 s before an uncached request."""
    pause_seconds = 1.1 if name.endswith("uncached") else 0.0
    ordered = sorted((one - pause_seconds) * 1000 for one in seconds)
    p50, p99 = statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    print(f"{name:28} p50 {p50:8.1f} ms   p99 {p99:8.1f} ms   ({len(ordered)} times)", flush=True)
    record_figure(f"{name}: p99", p99, "ms")
    return p50


if __name__ == "__main__":
    main()
