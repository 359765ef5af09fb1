"""Benchmark of a large store: disk per email, plans and times of the hot statements, lists, sending and vacuum.

    .venv/bin/python -m tools.benchmarks.growth [--emails 10000000] [--minutes 15] [--queued 1000000] [--hot]

Fills the tables of emails, recipients and events by set-based SQL until the number of emails or the time is reached,
creates their indexes and foreign keys again, measures disk and lists, and fills a queue. The statements that accept an
email, claim entries, load and record them run with EXPLAIN (ANALYZE, BUFFERS), first in an empty store and then in the
full one: none may scan a large table. Claims and one worker are measured as in tools.benchmarks.backlog. At the end, a
hundredth of the emails is deleted, and each table is vacuumed. With --hot, only the disk and the statements that
accept and send are measured. Requires DATABASE_URL of a server on which databases may be created, about 2 GB of disk
per million emails, and Debian's postfix package.
"""

import argparse
import importlib
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import psycopg

from tests.stack.stack import Stack, running_stack
from tools.benchmarks import backlog, lists
from tools.benchmarks.budget import started_django
from tools.benchmarks.explained import CLAIM_SIZE, ExplainedStatement, explain_stages, explained_statements
from tools.benchmarks.figures import record_figure
from tools.benchmarks.sinks import smtp_sink
from tools.benchmarks.sizes import size

CHUNK = 100_000
FILLING_CONNECTIONS = 2
READ_TIMES = size(50, smoke=1)
TABLES = ("emails_email", "emails_recipient", "emails_event")
COUNTERS = "analytics_tally, analytics_tallyday, analytics_tallydelta"
# Each email has one recipient, as most do; half of them were opened. The addresses and subjects differ, so that the
# index of the search grows as in production. Ids begin with the time, like those of core.lib.ids. Of tags, streams,
# templates, senders and events, some are frequent and some rare.
FILL = """
WITH made AS (
    SELECT n, at, second, (second || substr(md5('e' || n), 1, 24))::uuid AS email,
           (second || substr(md5('r' || n), 1, 24))::uuid AS recipient,
           'user' || (n * 7919 %% 400000) || '@' || (ARRAY['example.com', 'mail.example', 'corp.example'])[1 + n %% 3]
               AS address,
           'Your receipt #' || n AS subject, CASE WHEN n %% 2 = 0 THEN 'opened' ELSE 'delivered' END AS status,
           CASE WHEN n %% 50000 = 7 THEN 'bills.example' WHEN n %% 5 = 2 THEN 'news.example' ELSE 'demo.example' END
               AS domain,
           array_remove(ARRAY[CASE WHEN n %% 2 = 0 THEN 'receipt' END, CASE WHEN n %% 3 = 0 THEN 'shop' END,
               CASE WHEN n %% 200 = 1 THEN 'monthly' END, CASE WHEN n %% 20000 = 3 THEN 'vip' END], NULL) AS tags,
           CASE WHEN n %% 5000 = 1 THEN 'alerts' WHEN n %% 10 = 3 THEN 'newsletter' ELSE 'main' END AS stream,
           CASE WHEN n %% 20000 = 5 THEN 'tpl_rare' WHEN n %% 4 = 1 THEN 'tpl_frequent' END AS template
      FROM (SELECT n, at, lpad(to_hex(extract(epoch FROM at)::bigint), 8, '0') AS second
              FROM (SELECT n, now() - (%(count)s - n) * interval '250 milliseconds' AS at
                      FROM generate_series(%(start)s::bigint, %(stop)s) n) numbered) timed
), email AS (
    INSERT INTO emails_email (id, workspace_id, sender, from_domain, "to", cc, bcc, subject, search_text, tags, headers,
                              track_opens, track_clicks, created_at, status, retry_count, sent_at, delivered_at,
                              finished_at, stream, template_id)
    SELECT email, %(workspace)s, 'hello@' || domain, domain, ARRAY[address], '{}', '{}', subject,
           lower(address || E'\\n' || subject), tags, '{}', true, true, at, status, 0, at, at, at, stream, template
      FROM made
), recipient AS (
    INSERT INTO emails_recipient (id, email_id, kind, position, address, state, attempts, sent_at, delivered_at)
    SELECT recipient, email, 'to', 0, address, status, 1, at, at FROM made
)
INSERT INTO emails_event (id, email_id, recipient_id, kind, payload, created_at)
SELECT (second || substr(md5(kind || n), 1, 24))::uuid, email, recipient, kind, jsonb_build_object('to', address), at
  FROM made CROSS JOIN LATERAL unnest(array_remove(ARRAY['queued', 'sent', 'delivered',
           CASE WHEN status = 'opened' THEN 'opened' END, CASE WHEN n %% 20 = 0 THEN 'clicked' END,
           CASE WHEN n %% 100 = 11 THEN 'deferred' END, CASE WHEN n %% 20000 = 13 THEN 'complained' END], NULL)) AS kind
"""
# The indexes and foreign keys of these tables, without which a million emails are inserted in a minute.
FILLED = f"'{{{','.join(TABLES)}}}'::regclass[]"
TABLE_SIZES = f"""
SELECT relname, pg_table_size(oid) FROM pg_class WHERE oid = ANY({FILLED}) ORDER BY 2 DESC
"""  # noqa: S608 - constants
INDEX_SIZES = f"""
SELECT relname, pg_relation_size(indexrelid) FROM pg_index JOIN pg_class ON oid = indexrelid
 WHERE indrelid = ANY({FILLED}) ORDER BY 2 DESC
"""  # noqa: S608
INDEXES = f"""
SELECT format('DROP INDEX %I', indexrelid::regclass::text), pg_get_indexdef(indexrelid) FROM pg_index
 WHERE indrelid = ANY({FILLED}) AND NOT indisprimary
"""  # noqa: S608 - constants
FOREIGN_KEYS = f"""
SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname),
       format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
  FROM pg_constraint WHERE conrelid = ANY({FILLED}) AND contype = 'f'
"""  # noqa: S608
# Filters of the list, of many emails and of few; the last ones are of no email.
FILTERS = {
    "tag": ("receipt", "monthly", "vip", "none"),
    "event": ("opened", "clicked", "deferred", "complained", "scheduled"),
    "stream": ("main", "newsletter", "alerts", "none"),
    "search": ("receipt", "user77", "user77@corp", "#123456", "zz", "nothing of this"),
    "status": ("opened", "opened,delivered", "bounced,failed"),
    "from": ("{day}",),
}
# Filters of the dashboard, and limits of keys.
MORE_FILTERS = {
    "template": ("tpl_frequent", "tpl_rare"),
    "sender": ("news.example", "bills.example"),
    "domain": ("news.example", "bills.example"),
}
# Reads that people wait for, by name: `{email}` is the newest email.
READS = {
    "list": "/emails",
    "page 50": "/emails?page=50",
    "page 5,000": "/emails?page=5000",
    "page 100 of a tag of half": "/emails?tag=receipt&page=100",
    "email": "/emails/{email}",
    "timeline": "/emails/{email}/events",
    "analytics": "/analytics?from={month}",
    "queue statistics": "/queue/stats",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks.growth")
    parser.add_argument("--emails", type=int, default=size(10_000_000, smoke=20_000))
    parser.add_argument("--minutes", type=float, default=15, help="stop the filling after this time")
    parser.add_argument("--queued", type=int, default=size(1_000_000, smoke=1_000))
    parser.add_argument("--hot", action="store_true", help="only the statements that accept and send emails")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, smtp_sink() as port:
        transport = {"DELIVERY_TRANSPORT": "smtp", "SMTP_URL": f"smtp://127.0.0.1:{port}?tls=none"}
        with running_stack(Path(folder), **transport) as stack:
            explain_empty_store(stack)
            count = fill(stack, options.emails, minutes=options.minutes)
            measure_vacuum(stack)
            report_sizes(stack, count)
            if options.hot:
                explain_sending(stack, count, queued=options.queued)
            else:
                measure_full_store(stack, count, queued=options.queued)


def measure_full_store(stack: Stack, count: int, *, queued: int) -> None:
    stack.start("web", WEB_CONCURRENCY="2")
    wait_until_idle()
    measure_reads(stack)
    measure_more_filters(stack)
    explain_lists(stack)
    lists.measure_export(stack)
    explain_sending(stack, count, queued=queued)
    backlog.measure_claims(stack, f"claim of 32 entries, {queued:,} ready, {count:,} emails stored")
    measure_worker(stack, count)
    stack.stop([*stack.processes])
    measure_retention(stack, count)


def explain_sending(stack: Stack, count: int, *, queued: int) -> None:
    backlog.fill(stack, queued)
    report_scans(explain_stages(stack, f"{count:,} stored, {queued:,} queued"), "sending")


def explain_empty_store(stack: Stack) -> None:
    backlog.fill(stack, 10 * CLAIM_SIZE)
    explain_stages(stack, "empty store")
    stack.execute(f"TRUNCATE {', '.join(TABLES)}, emails_pending, {COUNTERS} CASCADE")


def fill(stack: Stack, count: int, *, minutes: float) -> int:
    """Insert emails, the oldest first; return their number."""
    started = time.monotonic()
    with psycopg.connect(stack.database, autocommit=True) as connection:
        (workspace,) = connection.execute("SELECT id FROM workspaces_workspace").fetchone()  # type: ignore[misc]
        with dropped(connection, FOREIGN_KEYS), dropped(connection, INDEXES):
            with ThreadPoolExecutor(FILLING_CONNECTIONS) as connections:
                chunks = [
                    {"workspace": workspace, "start": start, "stop": min(start + CHUNK - 1, count), "count": count}
                    for start in range(1, count + 1, CHUNK)
                ]
                deadline = started + minutes * 60
                filled = connections.map(partial(insert_chunk, stack.database, deadline=deadline), chunks)
            count = sum(filled)
        # Analytics begin with the workspace.
        connection.execute("UPDATE workspaces_workspace SET created_at = (SELECT min(created_at) FROM emails_email)")
        connection.execute(lists.COUNT)
        connection.execute(lists.COUNT_DAYS)
    seconds = time.monotonic() - started
    print(f"{count:,} emails inserted in {seconds:.0f} s", flush=True)
    record_figure("emails stored", count)
    return count


def insert_chunk(database: str, values: dict[str, Any], *, deadline: float) -> int:
    """Insert emails unless the deadline has passed; return their number."""
    if time.monotonic() > deadline:
        return 0
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SET statement_timeout = 0")
        connection.execute(FILL, values)
    return int(values["stop"] - values["start"] + 1)


@contextmanager
def dropped(connection: psycopg.Connection, sql: str) -> Iterator[None]:
    """Drop objects, and create them again afterwards. sql: returns the statements for both."""
    connection.execute("SET statement_timeout = 0")
    connection.execute("SET maintenance_work_mem = '1GB'")
    statements = connection.execute(sql).fetchall()
    for drop, _ in statements:
        connection.execute(drop)
    yield
    for _, create in statements:
        connection.execute(create)


def measure_vacuum(stack: Stack) -> None:
    started = time.monotonic()
    stack.execute("VACUUM ANALYZE")
    record_figure("VACUUM ANALYZE of the whole database", time.monotonic() - started, "s")


def report_sizes(stack: Stack, count: int) -> None:
    sizes = [*stack.query(TABLE_SIZES), *stack.query(INDEX_SIZES)]
    # Indexes of rare rows are empty here.
    for name, used in ((name, used) for name, used in sizes if used > count):
        record_figure(f"disk per email: {name}", used / count, "bytes")
    whole = sum(used for _, used in sizes)
    record_figure("disk per email without its content, 1 recipient, 3.5 events", whole / count, "bytes")


def read_paths(stack: Stack) -> dict[str, str]:
    """Return the paths of reads by name: those of READS, each filter, and each pair of filters."""
    email = stack.call("GET", "/emails?limit=1").body["data"][0]["id"]
    day, month = (f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}" for days in (1, 30))
    singles = [(name, value.format(day=day)) for name, values in FILTERS.items() for value in values]
    pairs = ([first, second] for first, second in itertools.combinations(singles, 2) if first[0] != second[0])
    filters = [*([single] for single in singles), *itertools.islice(pairs, size(1_000, smoke=5))]
    return {
        **{name: path.format(email=email, month=month) for name, path in READS.items()},
        **{"&".join(map("=".join, given)): f"/emails?{urlencode(given)}" for given in filters},
    }


def measure_reads(stack: Stack) -> None:
    slowest = {name: slowest_of(partial(stack.call, "GET", path)) for name, path in read_paths(stack).items()}
    pairs = {name: milliseconds for name, milliseconds in slowest.items() if "&" in name}
    for name, milliseconds in slowest.items():
        if name not in pairs:
            record_figure(f"{name}: slowest of {READ_TIMES}", milliseconds, "ms", at_most=200)
    for name, milliseconds in sorted(pairs.items(), key=itemgetter(1), reverse=True)[:5]:
        record_figure(f"{name}, of the slowest of {len(pairs)} pairs", milliseconds, "ms", at_most=200)


def explain_lists(stack: Stack) -> None:
    """Print the plans of lists, and report how many scan a large table."""
    paths, all_statements = read_paths(stack), []
    with started_django(stack):
        client = importlib.import_module("django.test").Client(
            headers={"Authorization": f"Bearer {stack.key}", "Host": urlsplit(stack.url).netloc}
        )
        for name, path in paths.items():
            with explained_statements() as statements:
                answer = client.get(f"/v1{path}")
            assert answer.status_code == 200, answer.content
            print(f"{name}: {sum(statement.milliseconds for statement in statements):.0f} ms in PostgreSQL")
            for statement in statements:
                print(
                    f"{statement.blocks:6} {statement.milliseconds:6.2f} ms {', '.join(statement.indexes)}", flush=True
                )
            all_statements += statements
    report_scans(all_statements, f"{len(paths)} reads")


def measure_more_filters(stack: Stack) -> None:
    """Measure the filters without a parameter of the API, without the request."""
    with started_django(stack):
        pages = importlib.import_module("emails.listing.pages")
        filterset = importlib.import_module("console.dashboard.pages.emails.search").EmailListFilters
        limits = importlib.import_module("core.workspaces.key_limits").KeyLimits
        emails = importlib.import_module("emails.models").Email.objects
        workspace_id = emails.all()[:1].get().workspace_id
        for name, value in ((name, value) for name, values in MORE_FILTERS.items() for value in values):
            given = limits(domains=(value,)) if name == "domain" else limits()
            filters = {} if name == "domain" else {name: value}
            query = pages.email_query(
                emails.filter(workspace=workspace_id).within(given, workspace_id=workspace_id),
                filters,
                workspace_id=workspace_id,
                limits=given,
                filterset=filterset,
            )
            milliseconds = slowest_of(partial(pages.read_page, query, start=0, limit=20))
            record_figure(f"{name}={value}: slowest of {READ_TIMES}", milliseconds, "ms", at_most=200)


def wait_until_idle() -> None:
    """Wait until the load average of a minute is 0.5, for ten minutes at most."""
    for _ in range(size(600, smoke=0)):
        if os.getloadavg()[0] <= 0.5:
            break
        time.sleep(1)
    record_figure("load average before the reads", os.getloadavg()[0], at_most=0.5)


def slowest_of(read: Callable[[], Any]) -> float:
    """Return the longest time in milliseconds, after a first read. A reply that is not 200 fails."""
    seconds = []
    for _ in range(1 + READ_TIMES):
        started = time.monotonic()
        answer = read()
        seconds.append(time.monotonic() - started)
        assert getattr(answer, "status", 200) == 200, answer
    return max(seconds[1:]) * 1000


def report_scans(statements: list[ExplainedStatement], name: str) -> None:
    scans = [statement for statement in statements if statement.scans_large_table]
    for statement in scans:
        print(statement.plan)
    record_figure(f"statements of {name} that scan a large table", len(scans), at_most=0)


def measure_worker(stack: Stack, count: int) -> None:
    backlog.start_worker(stack)
    before, started = backlog.ready_count(stack), time.monotonic()
    time.sleep(backlog.WARM_SECONDS)
    rate = (before - backlog.ready_count(stack)) / (time.monotonic() - started)
    record_figure(f"emails sent by one worker, {count:,} emails stored", rate, "/s")


def measure_retention(stack: Stack, count: int) -> None:
    """Delete a hundredth of the emails as retention does, then vacuum each table."""
    ((workspace,),) = stack.query("SELECT id FROM workspaces_workspace")
    with started_django(stack):
        retention = importlib.import_module("emails.upkeep.retention")
        workspace_id = importlib.import_module("core.lib.ids").from_uuid(workspace, prefix="ws_")
        started = time.monotonic()
        pages = retention.delete_expired_emails(workspace_id, timedelta(hours=1))
        batches = max(1, count // 100 // retention.BATCH_SIZE)
        deleted = retention.BATCH_SIZE * sum(1 for _ in itertools.islice(pages, batches))
    record_figure("emails deleted by retention, without pauses", deleted / (time.monotonic() - started), "/s")
    for table in TABLES:
        started = time.monotonic()
        # Otherwise the indexes are left alone until 2 % of the table's blocks have dead rows.
        stack.execute(f"VACUUM (INDEX_CLEANUP ON) {table}")
        record_figure(f"VACUUM of {table} after {deleted:,} deleted emails", time.monotonic() - started, "s")


if __name__ == "__main__":
    main()
