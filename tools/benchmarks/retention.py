"""Benchmark of the sending rate while retention deletes a million expired emails.

    .venv/bin/python -m tools.benchmarks.retention [expired]

At the end it checks that no expired email is left, the counters are correct, and the links of a deleted email still
work. Then, without sending, contentRetention of a stream is compared with retention without it: the removal of
contents, and the deletion of emails whose contents were removed before.
Requires DATABASE_URL of a server on which databases may be created. Creating the data takes minutes and 2 GB.
"""

import http.client
import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from email import message_from_bytes, policy
from pathlib import Path

import psycopg

from core.lib.worker.stages import Stage
from tests.stack.entries import EMAILS, count_entries
from tests.stack.stack import PYTHON, REPOSITORY, Stack, running_stack, wait_for
from tools.benchmarks.batch import TEMPLATE, batch_body
from tools.benchmarks.figures import record_figure, record_rounds
from tools.benchmarks.sizes import size

CHUNK = 100_000
BACKLOG = size(4000, smoke=500)
WINDOW_SECONDS = size(15.0, smoke=1.0)
ROUNDS = size(3, smoke=1)
FILL = """
WITH made AS (
    SELECT gen_random_uuid() AS email, gen_random_uuid() AS recipient, gen_random_uuid() AS content,
           now() - interval '400 days' - n * interval '1 second' AS at FROM generate_series(%(start)s::int, %(stop)s) n
), content AS (
    INSERT INTO emails_content (id, html, text) SELECT content, repeat('<p>Hello</p>', 100), '' FROM made
), email AS (
    INSERT INTO emails_email (id, workspace_id, content_id, sender, from_domain, "to", cc, bcc, subject, search_text,
                              tags, headers, track_opens, track_clicks, created_at, status, retry_count, sent_at,
                              delivered_at, finished_at, content_hours)
    SELECT email, %(workspace)s, content, 'hello@demo.example', 'demo.example', ARRAY['u@example.com'], '{}', '{}',
           'Your receipt', 'u@example.com' || E'\n' || 'your receipt', '{}', '{}', true, true, at, 'delivered', 0, at,
           at, at, %(hours)s::smallint FROM made
), recipient AS (
    INSERT INTO emails_recipient (id, email_id, kind, position, address, state, attempts, sent_at, delivered_at)
    SELECT recipient, email, 'to', 0, 'u@example.com', 'delivered', 1, at, at FROM made
)
INSERT INTO emails_event (id, email_id, recipient_id, kind, payload, created_at)
SELECT gen_random_uuid(), email, recipient, kind, '{}', at
  FROM made CROSS JOIN unnest(ARRAY['queued', 'sent', 'delivered']) AS kind
"""
AGE = """
UPDATE emails_email SET created_at = created_at - interval '400 days', finished_at = finished_at - interval '400 days'
RETURNING id
"""
LINK = "https://example.com/receipt"
READER = "reader@example.com"
# Prints the seconds of a task, without those of the start of its process.
TIMED = """
import time
from emails import tasks
started = time.monotonic()
tasks.{task}()
print(time.monotonic() - started)
"""
CONTENT_HOURS = 24
COMPARED = size(200_000, smoke=1_000)
EXPIRE = ["manage.py", "shell", "--verbosity", "0", "-c", "from emails.tasks import expire; expire()"]


@dataclass(frozen=True)
class EmailLinks:
    """The click and unsubscribe paths of one email."""

    email_id: str
    click: str
    unsubscribe: str


def main() -> None:
    expired = int(sys.argv[1]) if len(sys.argv) > 1 else size(1_000_000, smoke=1_000)
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder)) as stack:
        stack.start("web", WEB_CONCURRENCY="1")
        stack.start("inbox", "worker", "beat")
        links = send_expired_email(stack)
        fill(stack, expired)
        stack.call("POST", "/templates", TEMPLATE)
        measure_sending(stack)
        ratios = [measure_ratio(stack) for _ in range(ROUNDS)]
        print(f"sending keeps {statistics.median(ratios):.0%} of its rate", flush=True)
        record_figure(
            "sending rate during retention, relative to its normal rate",
            statistics.median(ratios) * 100,
            "%",
            at_least=80,
        )
        finish_retention(stack)
        check(stack, links)
        stack.stop(["worker", "beat"])
        compare_content_retention(stack, min(expired, COMPARED))


def send_expired_email(stack: Stack) -> EmailLinks:
    """Send an email, read its links, and move its timestamps before the retention period."""
    email_id = stack.send(to=READER, html=f'<p><a href="{LINK}">Receipt</a></p>').body["id"]
    wait_for(lambda: stack.caught() and stack.all_delivered(), seconds=30, what="the first email is delivered")
    source = bytes(stack.query("SELECT source FROM inbox_caughtmail")[0][0])
    mail = message_from_bytes(source, policy=policy.default)
    html = mail.get_body(("html",))
    assert html
    (click,) = re.findall(rf"{stack.url}(/t/c/[^\"]+)", html.get_content())
    (unsubscribe,) = re.findall(r"(/u/[^>]+)>", mail["List-Unsubscribe"])
    stack.query(AGE)
    return EmailLinks(email_id, click, unsubscribe)


def measure_ratio(stack: Stack) -> float:
    """Measure alone, with retention, and alone again, because the load of the machine changes."""
    before = measure_sending(stack)
    retention = start_retention(stack)
    during = measure_sending(stack)
    retention.terminate()
    retention.wait()
    alone = (before + measure_sending(stack)) / 2
    print(f"alone {alone:.0f}/s, during retention {during:.0f}/s; {expired_count(stack):,} expired left", flush=True)
    return during / alone


def measure_sending(stack: Stack) -> float:
    """Return the emails sent per second from a backlog, for WINDOW_SECONDS or until it is empty."""
    while queue_depth(stack) < BACKLOG:
        assert stack.call("POST", "/emails/batch", batch_body(0)).status == 202
    count, started = queue_depth(stack), time.monotonic()
    wait_for(lambda: time.monotonic() - started > WINDOW_SECONDS or queue_depth(stack) == 0, seconds=60, what="sending")
    return (count - queue_depth(stack)) / (time.monotonic() - started)


def start_retention(stack: Stack) -> "subprocess.Popen[bytes]":
    """Start retention and return when it is deleting."""
    process = subprocess.Popen([PYTHON, *EXPIRE], cwd=REPOSITORY, env=stack.environment)
    count = expired_count(stack)
    wait_for(lambda: expired_count(stack) < count, seconds=120, what="retention deletes", server=process)
    return process


def finish_retention(stack: Stack) -> None:
    count, started = expired_count(stack), time.monotonic()
    if count:
        assert start_retention(stack).wait() == 0
    seconds = time.monotonic() - started
    print(
        f"the other {count:,} in {seconds:.0f} s, {count / seconds:.0f}/s, pauses included;"
        f" {expired_count(stack)} are left",
        flush=True,
    )


def check(stack: Stack, links: EmailLinks) -> None:
    """Check that all expired emails are deleted, and that the counters and links are intact."""
    assert expired_count(stack) == 0
    print(stack.manage("reconcile").strip())
    assert stack.call("GET", f"/emails/{links.email_id}").status == 404
    assert call_link(stack, "GET", links.click) == (302, LINK)
    assert call_link(stack, "POST", links.unsubscribe)[0] == 200
    assert stack.query("SELECT email, reason FROM suppressions_suppression") == [(READER, "unsubscribe")]
    print("The links of a deleted email work.")


def compare_content_retention(stack: Stack, count: int) -> None:
    """Measure retention of emails with and without contentRetention in turn; record ratios of their rates."""
    removals, deletions = [], []
    for _ in range(ROUNDS):
        fill(stack, count)
        plain = run_timed(stack, "expire")
        fill(stack, count, hours=CONTENT_HOURS)
        removed = run_timed(stack, "remove_contents")
        ((left,),) = stack.query("SELECT count(*) FROM emails_content c JOIN emails_email e ON e.content_id = c.id")
        assert left == stack.query("SELECT count(*) FROM emails_content")[0][0]
        assert stack.query("SELECT count(*) FROM emails_email WHERE content_hours IS NOT NULL") == [(0,)]
        deleted = run_timed(stack, "expire")
        assert expired_count(stack) == 0
        print(
            f"{count:,} emails: deleted in {plain:.1f} s; their contents removed in {removed:.1f} s, then deleted in"
            f" {deleted:.1f} s",
            flush=True,
        )
        removals.append(100 * plain / removed)
        deletions.append(100 * plain / deleted)
    unit = "%"
    record_rounds("rate of content removal, relative to retention without it", removals, unit, at_least=100)
    record_rounds("rate of retention after content removal, relative to the same", deletions, unit, at_least=95)


def run_timed(stack: Stack, task: str) -> float:
    """Run a task of emails in a process of its own; return its seconds, pauses included."""
    return float(stack.manage("shell", "--verbosity", "0", "-c", TIMED.format(task=task)).split()[-1])


def call_link(stack: Stack, method: str, path: str) -> tuple[int, str | None]:
    """Return the status and the Location header of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", int(stack.environment["PORT"]), timeout=10)
    body = "List-Unsubscribe=One-Click" if method == "POST" else None
    connection.request(method, path, body, {"Content-Type": "application/x-www-form-urlencoded"})
    answer = connection.getresponse()
    connection.close()
    return answer.status, answer.headers["Location"]


def fill(stack: Stack, count: int, *, hours: int | None = None) -> None:
    """Add expired emails. hours: contentRetention of their stream; None without it."""
    with psycopg.connect(stack.database, autocommit=True) as connection:
        (workspace,) = connection.execute("SELECT id FROM workspaces_workspace").fetchone()  # type: ignore[misc]
        with suppress(psycopg.errors.InsufficientPrivilege):
            # A superuser may insert without checks of foreign keys.
            connection.execute("SET session_replication_role = replica")
        for start in range(1, count + 1, CHUNK):
            values = {"workspace": workspace, "start": start, "stop": min(start + CHUNK - 1, count), "hours": hours}
            connection.execute(FILL, values)
        connection.execute("VACUUM ANALYZE")
    stack.manage("reconcile", "--repair")


def queue_depth(stack: Stack) -> int:
    """Return the number of recipients that are ready or being sent, without deferred ones."""
    return count_entries(stack, EMAILS, Stage.READY, Stage.LEASED)


def expired_count(stack: Stack) -> int:
    old = "SELECT count(*) FROM emails_email WHERE created_at < now() - interval '365 days'"
    return int(stack.query(old)[0][0])


if __name__ == "__main__":
    main()
