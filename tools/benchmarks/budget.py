"""Budgets of the accept path and of the queue path: the processor time of each stage, in microseconds per email.

    .venv/bin/python -m tools.benchmarks.budget [emails]

One process runs the code of web, then that of a worker, with the functions of each stage wrapped: a stage's time is
the processor time of its thread, without the stages inside. Waiting is not counted, so a busy machine changes the
figures little; PostgreSQL and the mail host are other processes. The rest of a thread is listed as its last stage.
The wrappers add about half a microsecond to each call. Requires DATABASE_URL of a server on which databases may be
created, and Debian's postfix package.
"""

import functools
import importlib
import io
import json
import os
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.stack.stack import Stack, running_stack
from tools.benchmarks.accept import BODY
from tools.benchmarks.figures import record_figure
from tools.benchmarks.peers.messages import HTML, SENDER, SUBJECT, TEXT
from tools.benchmarks.peers.signatures import signature_seconds
from tools.benchmarks.sinks import smtp_sink
from tools.benchmarks.sizes import size

BATCH_SIZE = 500
SESSIONS = 100
# The name of a stage, and its function where it is used.
ACCEPT_STAGES = {
    "authentication and rate limit": "rest_framework.views:APIView.initial",
    "body: read and parse": "rest_framework.request:Request._load_data_and_files",
    "validation of the fields": "emails.accept.rules.emails:SendInput.run_validation",
    "idempotency key": "emails.api.views:read_key",
    "domain and content checks": "emails.accept.services:check_draft",
    "the statement and its values": "emails.accept.services:insert_emails",
    "database driver": "psycopg:Cursor.execute",
    "response": "rest_framework.response:Response.rendered_content.fget",
    "DRF view and router": "rest_framework.views:APIView.dispatch",
}
QUEUE_STAGES = {
    "claim: due entries": "emails.sending.emails_work:promote_due",
    "claim: entries": "core.lib.worker.lease_queue:Cursor.claim",
    "claim: loading": "emails.sending.emails_work:load_jobs",
    "claim: suppressions": "emails.sending.sending_checks:find_suppressed_sendings",
    "message: template": "emails.sending.outgoing_messages:render_stored",
    "message: links, pixel, footer": "emails.sending.outgoing_messages:_personalized_html",
    "message: other fields": "emails.sending.emails_work:build_message",
    "message: MIME": "core.delivery.message.compose:compose",
    "signature, with RSA": "core.delivery.message.compose:sign",
    "SMTP: dot-stuffing": "core.delivery.transports.composing:dot_stuffed",
    "record: lock": "core.lib.worker.lease_queue:LeaseQueue.lock_claimed",
    "record: recipients": "emails.sending.outcomes:_update_rows",
    "record: events": "emails.sending.outcomes:record_events",
    "record: status of emails": "emails.sending.outcomes:roll_up",
    "record: counters": "core.counters.counters:add",
    "record: rest": "emails.sending.emails_work:record_results",
    "database driver": "psycopg:Cursor.execute",
}


class StageTimes:
    """Processor seconds by stage, without the stages called from it; one stack of running stages per thread."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._local = threading.local()

    def wrap(self, stages: dict[str, str]) -> None:
        for stage, place in stages.items():
            module, _, path = place.partition(":")
            *owners, name = path.removesuffix(".fget").split(".")
            owner = functools.reduce(getattr, owners, importlib.import_module(module))
            if path.endswith(".fget"):
                setattr(owner, name, property(self._timed(stage, vars(owner)[name].fget)))
            else:
                setattr(owner, name, self._timed(stage, getattr(owner, name)))

    def _timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*arguments: Any, **options: Any) -> Any:
            inner = self._inner()
            inner.append(0.0)
            started = time.thread_time()
            try:
                return function(*arguments, **options)
            finally:
                used = time.thread_time() - started
                self.seconds[stage] += used - inner.pop()
                inner[-1] += used

        return timed

    def _inner(self) -> list[float]:
        if not hasattr(self._local, "inner"):
            self._local.inner = [0.0]
        found: list[float] = self._local.inner
        return found


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else size(3000, smoke=100)
    with tempfile.TemporaryDirectory() as folder, smtp_sink() as port:
        transport = {"DELIVERY_TRANSPORT": "smtp", "SMTP_URL": f"smtp://127.0.0.1:{port}?tls=none"}
        settings = {**transport, "WEB_CONCURRENCY": "1", "WEB_MAX_WAIT_MS": "60000"}
        with running_stack(Path(folder), **settings) as stack, started_django(stack):
            accept = measure_accept(stack, count=count)
            stack.execute("TRUNCATE emails_email, emails_recipient, emails_pending CASCADE")
            fill(stack, count)
            queue = measure_queue(stack, count=count)
    signature = 1e6 * signature_seconds()
    report("accept path, per request", accept)
    report("queue path, per email", queue)
    print(f"\nan RSA-2048 signature: {signature:.0f} us")


@contextmanager
def started_django(stack: Stack) -> Iterator[None]:
    """Run the application in this process."""
    os.environ.update(stack.environment, DJANGO_SETTINGS_MODULE="config.settings", DELIVERY_CONNECTIONS=str(SESSIONS))
    importlib.import_module("config.wsgi")
    yield
    importlib.import_module("django.db").connections.close_all()


def measure_accept(stack: Stack, *, count: int) -> dict[str, float]:
    """Return microseconds per request by stage, in one thread."""
    application = importlib.import_module("config.wsgi").application
    for _ in range(200):
        call(application, stack.key)
    times = StageTimes()
    times.wrap(ACCEPT_STAGES)
    started = time.thread_time()
    for _ in range(count):
        call(application, stack.key)
    whole = time.thread_time() - started
    times.seconds["Django, middleware"] = whole - sum(times.seconds.values())
    return {stage: 1e6 * seconds / count for stage, seconds in times.seconds.items()}


def call(application: Callable[..., Any], key: str) -> None:
    """Send one email as gunicorn would pass the request on."""
    body = json.dumps(BODY).encode()
    statuses: list[str] = []
    environ = {
        "REQUEST_METHOD": "POST", "SCRIPT_NAME": "", "PATH_INFO": "/v1/emails/send", "QUERY_STRING": "",
        "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "HTTP_HOST": "127.0.0.1",
        "REMOTE_ADDR": "127.0.0.1", "HTTP_AUTHORIZATION": f"Bearer {key}", "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body), "wsgi.errors": sys.stderr,
        "wsgi.url_scheme": "http", "wsgi.version": (1, 0), "wsgi.multithread": True, "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }  # fmt: skip
    response = application(environ, lambda status, *_: statuses.append(status))
    b"".join(response)
    response.close()
    assert statuses[0].startswith("202"), statuses


def fill(stack: Stack, count: int) -> None:
    """Queue emails from a template, with the web process that other callers use."""
    stack.start("web")
    template = {"name": "Receipt", "subject": SUBJECT, "htmlContent": HTML, "textContent": TEXT, "alias": "receipt"}
    assert stack.call("POST", "/templates", template).status == 201
    for start in range(0, count, BATCH_SIZE):
        numbers = range(start, min(start + BATCH_SIZE, count))
        recipients = [{"to": f"user{n}@example.com", "templateData": {"name": f"User {n}"}} for n in numbers]
        batch = {"from": SENDER, "templateId": "receipt", "recipients": recipients}
        assert stack.call("POST", "/emails/batch", batch).status == 202
    stack.kill("web")


def measure_queue(stack: Stack, *, count: int) -> dict[str, float]:
    """Return microseconds per email by stage: this thread runs all SQL, the network thread everything else."""
    processor = importlib.import_module("emails.sending.emails_work").emails_processor()
    loop = importlib.import_module("core.lib.worker.event_loop").network_loop()
    sys.setswitchinterval(importlib.import_module("config.worker").SWITCH_SECONDS)
    times = StageTimes()
    times.wrap(QUEUE_STAGES)
    network_started, started = thread_seconds(loop), time.thread_time()
    processor.run()
    network, whole = thread_seconds(loop) - network_started, time.thread_time() - started
    assert stack.query("SELECT count(*) FROM emails_recipient WHERE state = 'sent'") == [(count,)]
    in_network = [name for name in times.seconds if name.startswith(("message", "signature", "SMTP"))]
    of_network = sum(times.seconds[name] for name in in_network)
    rest = whole - (sum(times.seconds.values()) - of_network)
    times.seconds["SMTP: sessions, event loop"] = network - of_network
    times.seconds["queue processor: rest"] = rest
    return {stage: 1e6 * seconds / count for stage, seconds in times.seconds.items()}


def thread_seconds(loop: Any) -> float:
    """Return the processor time of the network thread so far."""
    asyncio = importlib.import_module("asyncio")

    async def read() -> float:
        return time.thread_time()

    return float(asyncio.run_coroutine_threadsafe(read(), loop).result(timeout=30))


def report(title: str, microseconds: dict[str, float]) -> None:
    whole = sum(microseconds.values())
    print(f"\n| {title} | microseconds | share |\n|---|---|---|")
    for stage, value in sorted(microseconds.items(), key=lambda item: -item[1]):
        print(f"| {stage} | {value:.0f} | {100 * value / whole:.0f} % |")
    print(f"| all | {whole:.0f} | 100 % |", flush=True)
    record_figure(f"processor time of the {title}", whole, "us")


if __name__ == "__main__":
    main()
