"""An upgrade from another commit while mail flows, with a filled database.

The service runs with the code of the commit while callers use it. Meanwhile the database is migrated with the code of
this checkout, and one process after another is restarted with it. The auditor compares answers, messages and webhooks
with the database; readers compare pages, stream and timelines.
"""

import os
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from tests.audit.auditor import wire_id
from tests.audit.ledger import Ledger
from tests.chaos.callers import Caller
from tests.chaos.chaos import SETTINGS
from tests.chaos.feed_reader import FeedReader
from tests.chaos.stream_reader import StreamReader
from tests.stack.scenario import Scenario, running_scenario
from tests.stack.stack import PYTHON, REPOSITORY
from tools.embedded.servers import postgres

CALLERS = 3
# How long the service runs with the old code before, and with the new code after the upgrade.
RUN_SECONDS = 20.0
SETTLE_SECONDS = 300.0
CHUNK = 50_000
EVENTS_PER_EMAIL = 4
PROCESSES = ("worker", "web", "inbound", "submission", "beat")
# Emails to the simulator, which the auditor does not expect in the sink. They belong to another workspace.
WORKSPACE = """
INSERT INTO workspaces_workspace (id, name, plan, suspended_reason, created_at)
VALUES (gen_random_uuid(), 'Filled', 'enterprise', '', now()) RETURNING id
"""
FILL = """
WITH made AS (
    SELECT gen_random_uuid() AS email, gen_random_uuid() AS recipient, gen_random_uuid() AS content,
           now() - n * interval '1 second' AS at FROM generate_series(%(start)s::int, %(stop)s) n
), content AS (
    INSERT INTO emails_content (id, html, text) SELECT content, '<p>Hello</p>', '' FROM made
), email AS (
    INSERT INTO emails_email (id, workspace_id, content_id, sender, from_domain, "to", cc, bcc, subject, search_text,
                              tags, headers, track_opens, track_clicks, created_at, status, retry_count, sent_at,
                              delivered_at, finished_at)
    SELECT email, %(workspace)s, content, 'hello@demo.example', 'demo.example', ARRAY['delivered@simulator.test'],
           '{}', '{}', 'Your receipt', 'your receipt', '{}', '{}', true, true, at, 'delivered', 0, at, at, at FROM made
), recipient AS (
    INSERT INTO emails_recipient (id, email_id, kind, position, address, state, attempts, sent_at, delivered_at,
                                  finished_at)
    SELECT recipient, email, 'to', 0, 'delivered@simulator.test', 'delivered', 2, at, at, at FROM made
), event AS (
    INSERT INTO emails_event (id, email_id, recipient_id, kind, payload, created_at)
    SELECT gen_random_uuid(), email, CASE WHEN kind <> 'queued' THEN recipient END, kind, '{}', at
      FROM made CROSS JOIN unnest(ARRAY['queued', 'deferred', 'sent', 'delivered']) AS kind
)
SELECT email FROM made
"""
USED = """
INSERT INTO workspaces_usage (month, used, workspace_id) VALUES (date_trunc('month', now())::date, %s, %s)
"""
# Events that are missing in the feed, and entries that are repeated.
UNPLACED = """
SELECT (SELECT count(*) FROM emails_event), (SELECT count(*) FROM events_feedentry),
       (SELECT count(DISTINCT (source, number)) FROM events_feedentry)
"""


def run_upgrade(logs: Path, *, commit: str, events: int) -> list[str]:
    """Upgrade from a commit with about that many events; print the progress and return the violations."""
    database = postgres.start_throw_away(settings=SETTINGS)
    os.environ["DATABASE_URL"] = database.url
    try:
        with checkout(commit, logs / "before") as before, running_scenario(logs, repository=before) as scenario:
            scenario.stack.start("beat")
            fill(scenario, events // EVENTS_PER_EMAIL)
            return upgrade_under_load(scenario)
    finally:
        database.stop()


@contextmanager
def checkout(commit: str, directory: Path) -> Iterator[Path]:
    """Yield a checkout of a commit of this repository; its code runs with the packages of this environment."""
    subprocess.run(["git", "worktree", "add", "--detach", directory, commit], cwd=REPOSITORY, check=True)
    try:
        yield directory
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", directory], cwd=REPOSITORY, check=True)


def fill(scenario: Scenario, emails: int) -> None:
    with psycopg.connect(scenario.stack.database, autocommit=True) as connection:
        ((workspace,),) = connection.execute(WORKSPACE).fetchall()
        for start in range(0, emails, CHUNK):
            stop = min(start + CHUNK, emails) - 1
            values = {"workspace": workspace, "start": start, "stop": stop}
            _record_filled(scenario.ledger, connection.execute(FILL, values), wire_id(workspace, "ws_"))
        connection.execute(USED, [emails, workspace])
        connection.execute("VACUUM ANALYZE")
    # The counters of these emails.
    scenario.stack.manage("reconcile", "--repair")
    print(f"{emails * EVENTS_PER_EMAIL:,} events of {emails:,} emails inserted", flush=True)


def _record_filled(ledger: Ledger, rows: "psycopg.Cursor[tuple[object]]", workspace: str) -> None:
    for (email,) in rows:
        ledger.record_accepted(wire_id(email), workspace=workspace, addresses=("delivered@simulator.test",))


def upgrade_under_load(scenario: Scenario) -> list[str]:
    """Upgrade while callers and readers use the service; return the violations."""
    is_over = threading.Event()
    feed = FeedReader(scenario, random.Random(1))
    stream = StreamReader(scenario, random.Random(2))
    callers = [Caller(scenario, random.Random(number)) for number in range(CALLERS)]
    threads = [threading.Thread(target=_run_until_over, args=[party, is_over]) for party in (feed, stream, *callers)]
    for thread in threads:
        thread.start()
    time.sleep(RUN_SECONDS)
    migrate(scenario)
    for name in PROCESSES:
        restart(scenario, name)
    # Events of the version before may have other members in webhooks than in the feed.
    feed.compared_from = stream.compared_from = datetime.now(UTC).isoformat()
    time.sleep(RUN_SECONDS)
    is_over.set()
    for thread in threads:
        thread.join()
    scenario.wait_until_idle(seconds=SETTLE_SECONDS)
    errors = [party.error for party in callers if party.error]
    found = [*feed.find_violations(), *stream.find_violations(), *feed.find_timeline_violations()]
    return [*errors, *scenario.find_violations(), *found, *find_unplaced(scenario)]


def _run_until_over(party: FeedReader | Caller, is_over: threading.Event) -> None:
    while not is_over.is_set():
        party.run(time.monotonic() + 1)


def migrate(scenario: Scenario) -> None:
    """Migrate with the new code; print its output with the time since the beginning."""
    started = time.monotonic()
    with subprocess.Popen(
        [PYTHON, "manage.py", "migrate"],
        cwd=REPOSITORY,
        env=scenario.stack.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout
        for line in process.stdout:
            print(f"{time.monotonic() - started:6.1f} s  {line}", end="", flush=True)
    assert process.returncode == 0, "the migration failed"
    print(f"the migrations took {time.monotonic() - started:.1f} s", flush=True)


def restart(scenario: Scenario, name: str) -> None:
    """Stop a process as a service manager does, and start the new version."""
    process = scenario.stack.processes.pop(name)
    process.terminate()
    process.wait(120)
    scenario.stack.repository = REPOSITORY
    scenario.stack.start(name)
    print(f"{name} runs the new version", flush=True)


def find_unplaced(scenario: Scenario) -> Iterator[str]:
    ((events, entries, distinct),) = scenario.stack.query(UNPLACED)
    if not events == entries == distinct:
        yield f"{events} events have {entries} entries in the feed, {distinct} of them distinct"
