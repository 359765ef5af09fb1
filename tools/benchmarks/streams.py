"""Benchmark of streams: the delay of a transactional email beside a queue of a bulk stream of the same workspace.

    .venv/bin/python -m tools.benchmarks.streams [bulk emails]

A workspace sends five emails a second over HTTP to a sink, first with an empty queue, then while one worker sends the
emails of a bulk stream that were queued before. Requires DATABASE_URL of a server on which databases may be created,
and Debian's postfix package.
"""

import sys
import tempfile
import time
from pathlib import Path

from tests.stack.stack import Stack, running_stack, wait_for
from tools.benchmarks.backlog import ready_count, report
from tools.benchmarks.sinks import smtp_sink
from tools.benchmarks.sizes import size

PAUSE_SECONDS = 0.2
EMAILS = size(50, smoke=3)
BATCH = 500
DELAYS = """
SELECT extract(epoch FROM r.sent_at - e.created_at)::float
  FROM emails_email e JOIN emails_recipient r ON r.email_id = e.id
 WHERE e.subject = %s AND r.sent_at IS NOT NULL
"""


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else size(10_000, smoke=5_000)
    with tempfile.TemporaryDirectory() as folder, smtp_sink() as port:
        transport = {"DELIVERY_TRANSPORT": "smtp", "SMTP_URL": f"smtp://127.0.0.1:{port}?tls=none"}
        with running_stack(Path(folder), **transport) as stack:
            stack.start("web", "worker", WEB_CONCURRENCY="1", WORKER_CONCURRENCY="1")
            measure(stack, "warm-up")
            alone = measure(stack, "alone")
            report("delay of an email, empty queue", alone)
            stack.kill("worker")
            fill(stack, count)
            stack.start("worker", WORKER_CONCURRENCY="1")
            wait_for(lambda: ready_count(stack) < count, seconds=60, what="the worker is sending")
            beside = measure(stack, "beside")
            assert ready_count(stack), "the bulk stream was sent before the measurement ended"
            report(f"delay of an email, {count:,} of a bulk stream queued", beside)


def fill(stack: Stack, count: int) -> None:
    """Queue the emails of a bulk stream."""
    assert stack.call("POST", "/streams", {"id": "news", "name": "News", "kind": "bulk"}).status == 201
    template = {"name": "news", "alias": "news", "subject": "News", "htmlContent": "<p>Hello</p>" * 100}
    assert stack.call("POST", "/templates", template).status == 201
    for start in range(0, count, BATCH):
        recipients = [{"to": f"reader{number}@example.com"} for number in range(start, start + BATCH)]
        batch = {"from": "hello@demo.example", "templateId": "news", "stream": "news", "recipients": recipients}
        assert stack.call("POST", "/emails/batch", batch).status == 202


def measure(stack: Stack, subject: str) -> list[float]:
    """Return the seconds from acceptance to the end of delivery of emails that are sent one after another."""
    for number in range(EMAILS):
        reply = stack.send(to=f"ada{number}@example.com", subject=subject)
        assert reply.status == 202, reply.body
        time.sleep(PAUSE_SECONDS)

    def delays() -> list[float]:
        return [seconds for (seconds,) in stack.query(DELAYS, subject)]

    wait_for(lambda: len(delays()) == EMAILS, seconds=60, what="the emails are sent")
    return delays()


if __name__ == "__main__":
    main()
