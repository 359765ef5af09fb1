"""Benchmark of lists, searches and exports on a workspace with three million emails and a thousand small ones.

    .venv/bin/python -m tools.benchmarks.lists [emails]

Requires DATABASE_URL of a server on which databases may be created. Creating the data takes minutes and 4 GB.
"""

import statistics
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

import psycopg

from tests.stack.stack import Stack, running_stack
from tools.benchmarks.figures import record_figure
from tools.benchmarks.sizes import size

FILL = """
INSERT INTO emails_email (id, workspace_id, sender, from_domain, "to", cc, bcc, subject, search_text, tags, headers,
                          track_opens, track_clicks, created_at, status, retry_count)
SELECT gen_random_uuid(), %(workspace)s, 'hello@demo.example', 'demo.example', ARRAY[address], '{}', '{}', subject,
       lower(address || E'\n' || subject), '{}', '{}', true, true,
       now() - (%(count)s - n) * interval '1 second', status, 0
  FROM (SELECT n,
               'user' || (n * 7919 %% 400000) || '@'
                   || (ARRAY['example.com', 'mail.example', 'corp.example'])[1 + n %% 3] AS address,
               (ARRAY['Your receipt', 'Reset your password', 'Welcome aboard', 'Invoice', 'Weekly digest'])[1 + n %% 5]
                   || ' #' || n AS subject,
               CASE WHEN n %% 100 < 60 THEN 'delivered' WHEN n %% 100 < 85 THEN 'opened'
                    WHEN n %% 100 < 97 THEN 'clicked' WHEN n %% 100 < 99 THEN 'bounced' ELSE 'failed' END AS status
          FROM generate_series(%(start)s::bigint, %(stop)s::bigint) n) made
"""
COUNT = """
INSERT INTO analytics_tally (workspace_id, hour, key, count)
SELECT workspace_id, date_trunc('hour', created_at, 'UTC'), 'status.' || status, count(*)
  FROM emails_email GROUP BY 1, 2, 3
"""
COUNT_DAYS = """
INSERT INTO analytics_tallyday (workspace_id, day, key, count)
SELECT workspace_id, (hour AT TIME ZONE 'UTC')::date, key, sum(count) FROM analytics_tally GROUP BY 1, 2, 3
"""
CHUNK = 250_000
QUERIES = {
    "list": "",
    "page 50": "page=50",
    "status delivered": "status=delivered",
    "status failed": "status=failed",
    "status bounced,failed": "status=bounced,failed",
    "search, 1 match": "search=%23123456",
    "search, 2 matches": "search=user77%40corp",
    "search, ~8,000 matches": "search=user77",
    "search, ~11,000 matches": "search=%23299",
    "search and status": "search=%23123456&status=delivered",
    "last hour": "from={hour}",
}


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else size(3_000_000, smoke=2_000)
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder)) as stack:
        fill(stack, count)
        stack.start("web", WEB_CONCURRENCY="2")
        for name, query in QUERIES.items():
            hour = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600))
            report(name, *measure(stack, query.format(hour=hour)))
        measure_export(stack)


def fill(stack: Stack, count: int) -> None:
    with psycopg.connect(stack.database, autocommit=True) as connection:
        (workspace,) = connection.execute("SELECT id FROM workspaces_workspace").fetchone()  # type: ignore[misc]
        others = connection.execute(
            "INSERT INTO workspaces_workspace (id, name, plan, suspended_reason)"
            " SELECT gen_random_uuid(), 'w' || n, 'free', '' FROM generate_series(1, 1000) n RETURNING id"
        ).fetchall()
        for start in range(1, count + 1, CHUNK):
            values = {"workspace": workspace, "start": start, "stop": min(start + CHUNK - 1, count), "count": count}
            connection.execute(FILL, values)
        for (other,) in others:
            connection.execute(FILL, {"workspace": other, "start": 1, "stop": 10, "count": 10})
        connection.execute(COUNT)
        connection.execute(COUNT_DAYS)
        connection.execute("VACUUM ANALYZE")


def measure(stack: Stack, query: str) -> tuple[list[float], int]:
    seconds, total = [], 0
    for number in range(size(60, smoke=11)):
        started = time.perf_counter()
        reply = stack.call("GET", f"/emails?{query}")
        if number >= 10:
            seconds.append(time.perf_counter() - started)
        assert reply.status == 200, reply.body
        total = reply.body["total"]
    return seconds, total


def report(name: str, seconds: list[float], total: int) -> None:
    p50, p99 = statistics.median(seconds) * 1000, max(seconds) * 1000
    record_figure(f"{name}: slowest of 50", p99, "ms", at_most=50)
    print(f"{name:24} total {total:>9,}   p50 {p50:6.1f} ms   slowest of 50 {p99:6.1f} ms", flush=True)


def measure_export(stack: Stack) -> None:
    request = urllib.request.Request(f"{stack.url}/v1/emails/export", headers={"Authorization": f"Bearer {stack.key}"})
    started = time.perf_counter()
    with urllib.request.urlopen(request) as response:
        first = response.readline()
        first_at = time.perf_counter() - started
        lines = sum(1 for _ in response)
    assert first.startswith(b'"id",')
    peak = peak_memory_mb(stack)
    record_figure(f"export of {lines:,} rows", time.perf_counter() - started, "s")
    print(f"export: {lines:,} rows in {time.perf_counter() - started:.2f} s, first line after {first_at * 1000:.0f} ms")
    print(f"largest web process afterwards: {peak} MB")


def peak_memory_mb(stack: Stack) -> int:
    parent = stack.processes["web"].pid
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    peaks = [Path(f"/proc/{pid}/status").read_text() for pid in children]
    return max(int(text.partition("VmHWM:")[2].split()[0]) for text in peaks) // 1024


if __name__ == "__main__":
    main()
